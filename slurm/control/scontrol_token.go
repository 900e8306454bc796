package control

import (
	"strconv"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/slurm/front"
)

// neverEnds is the lifespan of a token that is to have no end.
const neverEnds = 100 * 365 * 24 * time.Hour

// token is scontrol token [username=USER] [lifespan=SECONDS]: it prints what the REST interface takes.
func token(c *control, args []string) int {
	q := api.UserTokenRequest{Lifespan: 30 * time.Minute}
	for _, w := range args {
		key, value, _ := strings.Cut(w, "=")
		switch key = strings.ToLower(key); {
		case front.IsKey(key, 1, "username"):
			q.User = value
		case !front.IsKey(key, 1, "lifespan"):
			return c.complain("scontrol: error: Invalid option: " + w)
		case strings.EqualFold(value, "infinite"):
			q.Lifespan = neverEnds
		default:
			n, err := strconv.ParseUint(value, 10, 32)
			if err != nil || n == 0 {
				return c.complain("scontrol: error: Invalid lifespan: " + value)
			}
			q.Lifespan = time.Duration(n) * time.Second
		}
	}
	resp, err := front.Call(c.sys, api.MakeUserToken, q)
	if err != nil {
		text, _ := front.ErrorText(err)
		return c.complain("scontrol: error: " + text)
	}
	_, _ = c.out.WriteString("SLURM_JWT=" + resp.Token + "\n")
	return 0
}
