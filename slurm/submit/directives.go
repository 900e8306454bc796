package submit

import (
	"strconv"
	"strings"

	"dev.muster/slurm/opt"
)

// directives applies the #SBATCH lines of the script, and #PBS and #BSUB lines unless
// they are to be ignored. It reads up to the first line that is neither blank nor a
// comment. name is the script as messages call it.
func (r *Request) directives(name string, ignorePBS bool) error {
	p := ParserFor(opt.Sbatch)
	var foreign []string
	part, line := r, 0
	if r.addedShebang {
		line = -1
	}
	for text := range strings.SplitSeq(string(r.Script), "\n") {
		line++
		trimmed := strings.TrimSpace(text)
		if trimmed != "" && trimmed[0] != '#' {
			break
		}
		if strings.HasPrefix(text, "#PBS") || strings.HasPrefix(text, "#BSUB") {
			foreign = append(foreign, text)
			continue
		}
		rest, ok := strings.CutPrefix(text, "#SBATCH")
		if !ok {
			continue
		}
		argv, bad := SplitDirective(rest)
		if bad != "" {
			return r.fatal(name + ": line " + strconv.Itoa(line) + ": Unmatched `" + bad[:1] + "` in [" + bad[1:] + "]")
		}
		if len(argv) > 0 && (argv[0] == "hetjob" || argv[0] == "packjob") {
			if argv[0] == "packjob" {
				r.warn(`Warning: the "packjob" component separator is being deprecated. Please, use "hetjob" instead.`)
			}
			part = r.component()
			continue
		}
		if err := part.directive(p, argv); err != nil {
			return err
		}
	}
	if ignorePBS || r.Client.IgnorePBS {
		return nil
	}
	for _, text := range foreign {
		if err := r.foreignDirective(text); err != nil {
			return err
		}
	}
	return nil
}

// directive applies the words of one #SBATCH line.
func (r *Request) directive(p *opt.Parser[Request], argv []string) error {
	found, rest, err := p.Parse(argv)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return opt.Named(r.prog, "", "",
			opt.Errorf(opt.CodeUsage, "error: Invalid directive found in batch script: %s", rest[0]))
	}
	return r.apply(found, FromDirective)
}

// SplitDirective cuts a line into words as a shell would: quotes, backslashes, and a
// comment from a # that starts a word. bad is the quote that is not closed and the text
// from that word on.
func SplitDirective(s string) (words []string, bad string) {
	s = strings.TrimLeft(s, " \t")
	for {
		start := s
		s = strings.TrimLeft(s, " \t\r")
		if s == "" || s[0] == '#' {
			return words, ""
		}
		word, rest, quote := cutDirectiveWord(s)
		if quote != 0 {
			return words, string(quote) + start
		}
		words, s = append(words, word), rest
	}
}

// cutDirectiveWord reads one word; quote is the one left open.
func cutDirectiveWord(s string) (word, rest string, quote byte) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && quote != '\'' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			b.WriteByte(c)
		case c == '"' || c == '\'':
			quote = c
		case c == ' ' || c == '\t' || c == '\r':
			return b.String(), s[i:], 0
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), "", quote
}
