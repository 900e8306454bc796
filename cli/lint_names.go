package cli

import (
	"fmt"
	"slices"
	"strings"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/opt"
)

// Rules of muster lint about names that are mistyped, or that this cluster does not have.

// lintMistyped finds comments that were meant to be options: #SBACTH -t 10.
func lintMistyped(s *jobScript) (lintNote, bool) {
	for _, c := range s.comments {
		word, rest, _ := strings.Cut(strings.TrimSpace(c.words[0]), " ")
		late := len(s.commands) > 0 && c.n > s.commands[0].n
		if late || strings.HasPrefix(word, "##") || !isOptionWord(strings.TrimSpace(rest)) {
			continue
		}
		if word != "#SBATCH" && opt.Nearest(word, []string{"#SBATCH"}) != "" {
			return lintNote{c.n, "a comment, not an option: " + word + " is written #SBATCH"}, true
		}
	}
	return lintNote{}, false
}

// isOptionWord reports whether a text begins as an option does: -N2, --time=3.
func isOptionWord(text string) bool {
	return len(text) > 1 && text[0] == '-' && text[1] != ' ' && text[1] != '>'
}

// lintPartition finds partitions that this cluster does not have.
func lintPartition(s *jobScript) (lintNote, bool) {
	if s.req == nil || s.config == nil {
		return lintNote{}, false
	}
	var names []string
	for i := range s.config.Partitions {
		names = append(names, s.config.Partitions[i].Name)
	}
	return s.unknown("partition", "-p", s.req.Job.Partitions, names)
}

// lintAccount finds accounts that this cluster does not have, or not for the user.
func lintAccount(s *jobScript) (lintNote, bool) {
	if s.req == nil || s.req.Job.Account == "" || s.books == nil || len(s.books.Accounts) == 0 {
		return lintNote{}, false
	}
	var names []string
	for _, a := range s.books.Accounts {
		names = append(names, a.Name)
	}
	return s.unknown("account", "-A", []string{strings.ToLower(s.req.Job.Account)}, names)
}

// lintQOS finds QOS that this cluster does not have.
func lintQOS(s *jobScript) (lintNote, bool) {
	if s.req == nil || s.req.Job.QOS == "" || s.books == nil || len(s.books.QOS) == 0 {
		return lintNote{}, false
	}
	var names []string
	for _, q := range s.books.QOS {
		names = append(names, q.Name)
	}
	return s.unknown("qos", "-q", []string{strings.ToLower(s.req.Job.QOS)}, names)
}

// unknown is a note on the first name that is not among those of the cluster.
func (s *jobScript) unknown(option, short string, asked, known []string) (lintNote, bool) {
	for _, name := range asked {
		if slices.Contains(known, name) {
			continue
		}
		what := map[string]string{"qos": "QOS"}[option]
		if what == "" {
			what = option
		}
		return lintNote{
			s.directiveLine(option, short),
			fmt.Sprintf("this cluster has no %s %s%s", what, name, opt.Meant(name, known)),
		}, true
	}
	return lintNote{}, false
}

// lintRendezvous finds the one line of torchrun that waits for good: a rendezvous without a place.
func lintRendezvous(s *jobScript) (lintNote, bool) {
	l, args, _, ok := s.torchrun()
	backend, _ := option(args, "rdzv_backend")
	_, master := option(args, "master_addr")
	_, endpoint := option(args, "rdzv_endpoint")
	return lintNote{
			l.n,
			"torchrun with --rdzv-backend=c10d and --master-addr alone waits for good: say --rdzv-endpoint=HOST:PORT in place of --master-addr",
		},
		ok && backend == "c10d" && master && !endpoint
}

// lintBooks are the accounts and QOS of a cluster, if one answers.
func lintBooks(s *front.Sys) *api.BooksResponse {
	if s.Dial == nil {
		return nil
	}
	r, err := front.Call(s, api.ListBooks, api.AfterQuery{})
	if err != nil {
		return nil
	}
	return &r
}

// hasPartition reports whether a cluster has a partition.
func hasPartition(c *cluster.Config, name string) bool {
	return slices.ContainsFunc(c.Partitions, func(p cluster.Partition) bool { return p.Name == name })
}
