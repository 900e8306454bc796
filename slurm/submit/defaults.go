package submit

import (
	"io"
	"os"
	"strings"

	"dev.muster/slurm/front"
)

// maxDefaults bounds the file of a user's defaults.
const maxDefaults = 1 << 20

// userDefaults are the options that a user has set below all else in ~/.slurm/defaults, one a line: OPTION=VALUE,
// CLUSTER:OPTION=VALUE or COMMAND:CLUSTER:OPTION=VALUE, of which * stands for all. As in Slurm what is no option of the
// command, or cannot be read, is passed over.
func userDefaults(s *front.Sys, r *Request, cluster string) []front.SiteOption {
	u, ok := front.UserByID(s.UID)
	if !ok || s.NoFiles {
		return nil
	}
	f, err := os.Open(u.Home + "/.slurm/defaults")
	if err != nil {
		return nil
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxDefaults))
	if err != nil {
		return nil
	}
	known := ParserFor(r.prog)
	list := parseDefaults(string(text), r.prog.Name(), cluster)
	kept := list[:0]
	for _, o := range list {
		if row := known.Row(o.Long); row != nil && row.On&r.prog != 0 {
			kept = append(kept, o)
		}
	}
	return kept
}

// parseDefaults are the options in the text of such a file that are for a command and a cluster.
func parseDefaults(text, command, cluster string) (list []front.SiteOption) {
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(line, "=")
		key = strings.TrimSpace(key)
		if !ok || strings.HasPrefix(key, "#") {
			continue
		}
		words := strings.Split(key, ":")
		whose := [2]string{"*", "*"} // command, cluster
		if len(words) > len(whose)+1 {
			continue
		}
		copy(whose[len(whose)-(len(words)-1):], words)
		if isOrAll(whose[0], command) && isOrAll(whose[1], cluster) {
			list = append(list, front.SiteOption{Long: words[len(words)-1], Value: strings.TrimSpace(value)})
		}
	}
	return list
}

func isOrAll(word, name string) bool { return word == "*" || word == name }
