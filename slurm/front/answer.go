package front

import (
	"bufio"
	"errors"
	"io"
	"slices"

	"dev.muster/slurm/data"
)

// refuses says what --json and --yaml are told that ask for a list of versions, or for one that there is not; a
// code of 0 or more ends the program.
func (s *Sys) refuses(k *data.Ask) (code int) {
	switch {
	case k.List:
		_, _ = io.WriteString(s.Stderr, "Possible data_parser plugins:\n")
		for _, v := range data.Versions() {
			_, _ = io.WriteString(s.Stdout, "data_parser/"+v+"\n")
		}
		return 0
	case k.Bad != "":
		s.Say("error: load_plugins: unable to find plugin: data_parser/%s", k.Bad)
		s.Say("error: data_parser_g_new: failure loading plugins: Plugin has invalid format or unable to be loaded")
		s.Say("error: %s output not supported by data_parser/%s", k.Mime(), data.Versions()[len(data.Versions())-1])
		return 1
	}
	return -1
}

// Answer writes an answer of a cluster in the form that was asked for.
func (s *Sys) Answer(k *data.Ask, out *bufio.Writer, cluster string, parts ...data.Part) int {
	return s.AnswerWith(k, out, cluster, nil, parts...)
}

// AnswerWith is Answer with something to be warned of.
func (s *Sys) AnswerWith(k *data.Ask, out *bufio.Writer, cluster string, warned []data.Problem,
	parts ...data.Part) int {
	m := data.Meta{Cluster: cluster, Command: s.Args}
	m.User = s.NameOf(s.UID)
	if name, ok := GroupByID(s.GID); ok {
		m.Group = name
	}
	a := k.Answer(m)
	if s.warnings != nil {
		warned = slices.Concat(warned, *s.warnings)
	}
	a.Warnings, a.Rows = warned, data.Rows(parts)
	if s.Answers != nil {
		s.Answers(a)
	}
	if err := errors.Join(a.Write(out, parts...), out.Flush()); err != nil {
		return s.Fail("%v", err)
	}
	return 0
}
