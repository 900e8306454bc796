// Package opt reads command lines as glibc's getopt_long does for Slurm's programs:
// the same forms, the same abbreviations, the same messages. The options
// and their effects are a table of rows; nothing here knows any of them.
package opt

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// ArgKind says whether an option takes an argument.
type ArgKind uint8

// The kinds of arguments. An Optional one is only read from --name=value and -Xvalue.
const (
	None ArgKind = iota
	Required
	Optional
)

// Prog is a set of programs.
type Prog uint32

// The programs whose options are rows.
const (
	Sbatch Prog = 1 << iota
	Srun
	Salloc
	Scancel
	Squeue
	Sinfo
	Scontrol
	Sacct
	Sacctmgr
	Sprio
	Sshare
	Sreport
	Sdiag
	Seff
	Sstat
	Sbcast
	Sgather
	Sattach
	Scrontab
	Strigger
	Swait

	// All is every program that submits.
	All = Sbatch | Srun | Salloc
)

var progNames = [...]string{"sbatch", "srun", "salloc", "scancel", "squeue", "sinfo", "scontrol", "sacct",
	"sacctmgr", "sprio", "sshare", "sreport", "sdiag", "seff", "sstat",
	"sbcast", "sgather", "sattach", "scrontab", "strigger", "swait"}

// Name is the command of a single program.
func (p Prog) Name() string {
	for i, name := range progNames {
		if p == 1<<i {
			return name
		}
	}
	return ""
}

// envPrefix is what stands before the suffixes of Option.Env.
func (p Prog) envPrefix() string {
	switch p {
	case Sbatch:
		return "SBATCH_"
	case Salloc:
		return "SALLOC_"
	case Scancel, Squeue, Sinfo, Sacct, Sprio, Sbcast:
		return strings.ToUpper(p.Name()) + "_"
	}
	return "SLURM_"
}

// Option is a row: one option of one or more programs. Tables of them are laid out by
// the compiler (composite literals, no calls), so that they cost nothing at start-up.
type Option[T any] struct {
	Long  string
	Short byte // 0: none
	Arg   ArgKind
	On    Prog
	// ShortOn restricts Short to some programs; 0 means all of On.
	ShortOn Prog
	// Env names input variables, separated by blanks. SUFFIX stands for SBATCH_SUFFIX,
	// SLURM_SUFFIX (srun) and SALLOC_SUFFIX; prog=NAME is a whole name for one program.
	Env string
	// Alias is the Long of the row that this is another spelling of.
	Alias string
	// Newer marks what Slurm 22.05 does not have: it never makes an abbreviation that
	// worked there ambiguous.
	Newer bool
	// Hidden keeps the row out of --help.
	Hidden bool
	Group  Group
	Meta   string // the argument's name in --help
	Help   string
	// Ignored says why the option has no effect. It is accepted, and this said once.
	Ignored string
	Set     func(*T, string) error
}

// Group is the heading an option stands under in --help.
type Group uint8

// The headings of --help, in their order.
const (
	Run Group = iota
	Constraints
	Consumable
	Affinity
	GPU
	Containers
	HelpGroup
	Other
)

var groupTitles = [...]string{"Parallel run options", "Constraint options", "Consumable resources related options",
	"Affinity/Multi-core options", "GPU scheduling options", "Container options", "Help options", "Other options"}

// Parser reads the options of one program. Rows are the tables, searched in order.
type Parser[T any] struct {
	Prog Prog
	// Permute lets options follow other words, as in the programs that run no command.
	Permute bool
	Rows    [][]Option[T]
}

// Found is an option met on a command line or in the environment. Row is never an alias.
type Found[T any] struct {
	Row   *Option[T]
	Value string // the argument; empty without one
	Given bool   // an argument was given (it may be empty)
}

// Parse reads argv, which starts after the program's name, up to the first word that is
// no option or past "--", and returns what it met and the words left.
func (p *Parser[T]) Parse(argv []string) (found []Found[T], rest []string, err error) {
	for len(argv) > 0 {
		word := argv[0]
		if len(word) < 2 || word[0] != '-' {
			if p.Permute {
				rest, argv = append(rest, word), argv[1:]
				continue
			}
			return found, argv, nil
		}
		if word == "--" {
			return found, append(rest, argv[1:]...), nil
		}
		if strings.HasPrefix(word, "--") {
			var f Found[T]
			if f, argv, err = p.long(word[2:], argv[1:]); err != nil {
				return found, argv, err
			}
			found = append(found, f)
			continue
		}
		if found, argv, err = p.cluster(found, word[1:], argv[1:]); err != nil {
			return found, argv, err
		}
	}
	return found, rest, nil
}

// long reads one --name or --name=value.
func (p *Parser[T]) long(word string, next []string) (Found[T], []string, error) {
	name, value, given := strings.Cut(word, "=")
	if name == autocomplete {
		return Found[T]{}, next, p.complete(value, given, next)
	}
	row, typed, err := p.lookup(name, word)
	if err != nil {
		return Found[T]{}, next, err
	}
	f := Found[T]{Row: row, Value: value, Given: given}
	switch {
	case given && row.Arg == None:
		return f, next, p.usage("option '--" + typed + "' doesn't allow an argument")
	case !given && row.Arg == Required:
		if len(next) == 0 {
			return f, next, p.usage("option '--" + typed + "' requires an argument")
		}
		f.Value, f.Given, next = next[0], true, next[1:]
	}
	return f, next, nil
}

// cluster reads a word of short options, such as -vvN4.
func (p *Parser[T]) cluster(found []Found[T], word string, next []string) ([]Found[T], []string, error) {
	for i := 0; i < len(word); i++ {
		row := p.short(word[i])
		if row == nil {
			return found, next, p.usage("invalid option -- '" + word[i:i+1] + "'")
		}
		f := Found[T]{Row: row}
		if row.Arg == None {
			found = append(found, f)
			continue
		}
		f.Value = word[i+1:]
		f.Given = f.Value != ""
		if row.Arg == Required && !f.Given {
			if len(next) == 0 {
				return found, next, p.usage("option requires an argument -- '" + word[i:i+1] + "'")
			}
			f.Value, f.Given, next = next[0], true, next[1:]
		}
		return append(found, f), next, nil
	}
	return found, next, nil
}

// autocomplete is an option of every program since 24.05; scripts of shells call it.
const autocomplete = "autocomplete"

// complete answers --autocomplete: the long names that begin with value, which may be the next word.
func (p *Parser[T]) complete(value string, given bool, next []string) error {
	if !given && len(next) == 0 {
		return p.usage("option '--" + autocomplete + "' requires an argument")
	}
	if !given {
		value = next[0]
	}
	prefix := strings.TrimLeft(value, "-")
	names := []string{}
	p.each(func(o *Option[T]) bool {
		if strings.HasPrefix(o.Long, prefix) && !o.Hidden {
			names = append(names, "--"+o.Long+map[ArgKind]string{Required: "="}[o.Arg])
		}
		return true
	})
	slices.Sort(names)
	return Answer(slices.Compact(names)...)
}

// each calls f with the program's rows until it returns false.
func (p *Parser[T]) each(f func(*Option[T]) bool) {
	for _, rows := range p.Rows {
		for i := range rows {
			if rows[i].On&p.Prog != 0 && !f(&rows[i]) {
				return
			}
		}
	}
}

// first is the first of the program's rows that is so, or nil.
func (p *Parser[T]) first(is func(*Option[T]) bool) (row *Option[T]) {
	p.each(func(o *Option[T]) bool {
		if is(o) {
			row = o
		}
		return row == nil
	})
	return row
}

// shortOf is the letter of an option in this program, 0 if it has none.
func (p *Parser[T]) shortOf(o *Option[T]) byte {
	if o.ShortOn == 0 || o.ShortOn&p.Prog != 0 {
		return o.Short
	}
	return 0
}

func (p *Parser[T]) short(c byte) *Option[T] {
	return p.first(func(o *Option[T]) bool { return o.Short == c && p.shortOf(o) == c })
}

// lookup finds the row of a long name or an abbreviation of it, and the name of it that
// getopt's messages use. word is what was written after the dashes.
func (p *Parser[T]) lookup(name, word string) (*Option[T], string, error) {
	var exact *Option[T]
	var old, newer []*Option[T]
	p.each(func(o *Option[T]) bool {
		switch {
		case o.Long == name:
			exact = o
		case !strings.HasPrefix(o.Long, name):
		case o.Newer:
			newer = append(newer, o)
		default:
			old = append(old, o)
		}
		return exact == nil
	})
	if exact != nil {
		return p.canonical(exact), exact.Long, nil
	}
	if len(old) == 0 {
		old = newer
	}
	if len(old) == 0 {
		err := p.usage("unrecognized option '--" + word + "'")
		if near := Nearest(name, p.longNames()); near != "" {
			err.Lines = append(err.Lines, p.Prog.Name()+": why: do you mean --"+near+"?")
		}
		return nil, "", err
	}
	list := ""
	same := true
	for _, o := range old {
		list += " '--" + o.Long + "'"
		same = same && p.canonical(o) == p.canonical(old[0])
	}
	if !same {
		return nil, "", p.usage("option '--" + word + "' is ambiguous; possibilities:" + list)
	}
	return p.canonical(old[0]), old[0].Long, nil
}

// canonical is the row that o is another spelling of, or o.
func (p *Parser[T]) canonical(o *Option[T]) *Option[T] {
	if o.Alias == "" {
		return o
	}
	return cmp.Or(p.Row(o.Alias), o)
}

// Row returns the program's row of that long name, or nil.
func (p *Parser[T]) Row(long string) *Option[T] {
	return p.first(func(o *Option[T]) bool { return o.Long == long })
}

// longNames are those of all options.
func (p *Parser[T]) longNames() (names []string) {
	p.each(func(o *Option[T]) bool {
		names = append(names, o.Long)
		return true
	})
	return names
}

func (p *Parser[T]) usage(text string) *UsageError {
	name := p.Prog.Name()
	return &UsageError{Code: CodeUsage, Lines: []string{name + ": " + text, `Try "` + name + ` --help" for more information`}}
}

// Env returns the options set by input variables, in the table's order. get looks a
// variable up. A flag is set by an empty value, "yes" or a number other than zero.
func (p *Parser[T]) Env(get func(name string) (string, bool)) (found []Found[T]) {
	p.each(func(o *Option[T]) bool {
		for word := range strings.SplitSeq(o.Env, " ") {
			name := p.EnvName(word)
			if name == "" {
				continue
			}
			value, ok := get(name)
			if !ok || o.Arg == None && p.Prog&All != 0 && !truth(value) {
				continue
			}
			found = append(found, Found[T]{Row: p.canonical(o), Value: value, Given: value != "" || o.Arg == Required})
		}
		return true
	})
	return found
}

// EnvName is the variable a word of Option.Env stands for in this program, or "".
func (p *Parser[T]) EnvName(word string) string {
	prog, name, whole := strings.Cut(word, "=")
	switch {
	case word == "":
		return ""
	case !whole:
		return p.Prog.envPrefix() + word
	case prog == p.Prog.Name():
		return name
	}
	return ""
}

func truth(v string) bool {
	if v == "" || strings.EqualFold(v, "yes") {
		return true
	}
	n, err := strconv.ParseInt(v, 10, 64)
	return err == nil && n != 0
}
