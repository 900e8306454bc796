package cli

import (
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"dev.muster/api"
)

// jwtCommands show and end what scontrol token makes.
func jwtCommands() []*cli.Command {
	return []*cli.Command{
		{Name: "list", Usage: "list the keys that sign user tokens, and the revoked tokens",
			Action: func(c *cli.Context) error {
				r, err := api.Call(c.Context, local(), api.ListJWT, api.Empty{})
				if err != nil {
					return err
				}
				return printJWT(&r)
			}},
		{Name: "rotate", Usage: "sign new user tokens with a new key; existing tokens stay valid until they expire",
			Flags: []cli.Flag{&cli.BoolFlag{Name: "cut", Usage: "revoke all existing tokens"}},
			Action: func(c *cli.Context) error {
				r, err := api.Call(c.Context, local(), api.RotateJWT, api.JWTRotation{Cut: c.Bool("cut")})
				if err != nil {
					return err
				}
				return printJWT(&r)
			}},
		{Name: "revoke", Usage: "revoke one token, or all existing tokens of yours, of a user or of everybody",
			ArgsUsage: "[TOKEN|ID]", Flags: []cli.Flag{
				&cli.StringFlag{Name: "user", Usage: "revoke the tokens of this user"},
				&cli.BoolFlag{Name: "all", Usage: "revoke the tokens of all users"},
			}, Action: func(c *cli.Context) error {
				if c.NArg() > 1 {
					return errors.New("revoke: one token at a time")
				}
				_, err := api.Call(c.Context, local(), api.EndJWT, api.JWTEndRequest{User: c.String("user"),
					All: c.Bool("all"), Token: c.Args().First()})
				return err
			}},
	}
}

func printJWT(r *api.JWTResponse) error {
	return table(func(w *tabwriter.Writer) {
		if r.File != "" {
			fmt.Fprintf(w, "KEY\tfile %s (AuthAltParameters)\n", r.File)
		}
		fmt.Fprintln(w, "KEY\tMADE\tSIGNS")
		for i, k := range r.Keys {
			fmt.Fprintf(w, "%s\t%s\t%s\n", k.ID, k.Made.Local().Format(time.DateTime), yesNo(i == 0 && r.File == ""))
		}
		if len(r.Ended) > 0 {
			fmt.Fprintln(w, "\nENDED\tTOKEN\tMADE BEFORE")
		}
		for _, e := range r.Ended {
			who, id, before := e.User, e.Token, e.At.Local().Format(time.DateTime)
			if who == "" {
				who = "everybody"
			}
			if id == "" {
				id = "all"
			} else {
				before = ""
			}
			fmt.Fprintf(w, "%s\t%s\t%s\n", who, id, before)
		}
	})
}
