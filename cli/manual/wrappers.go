package manual

import (
	"fmt"
	"path"
	"strings"

	"dev.muster/packaging"
	"dev.muster/slurm"
)

// The completion of the wrappers. Their options have one dash, and their values follow as words of their own. The
// values are those of the option of sbatch that each becomes.

// wrapperFiles are the completion of one wrapper.
func wrapperFiles(w *slurm.Wrapper) []packaging.File {
	return []packaging.File{
		file(path.Join("share/bash-completion/completions", w.Name), bashWrapper(w)),
		file(path.Join("share/zsh/site-functions", "_"+w.Name), zshWrapper(w)),
		file(path.Join("share/fish/vendor_completions.d", w.Name+".fish"), fishWrapper(w)),
	}
}

// wrappedNames is the command that finds the names that an option takes; "": it takes others.
func wrappedNames(o *slurm.WrapperOption) string {
	if o.Names != "" {
		return "muster internal names " + o.Names + " 2>/dev/null"
	}
	if find := namesOf(o.Becomes); find != "" {
		return find + " 2>/dev/null"
	}
	return ""
}

// operandNames is the command that finds what a wrapper is called with; "": files, or nothing.
func operandNames(w *slurm.Wrapper) string {
	if w.Operands == "" {
		return ""
	}
	return "muster internal names " + w.Operands + " 2>/dev/null"
}

func bashWrapper(w *slurm.Wrapper) string {
	var b strings.Builder
	var flags []string
	fmt.Fprintf(&b, "# completion of %s for bash, made from its table of options\n_muster_%[1]s() {\n", w.Name)
	b.WriteString("    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n    COMPREPLY=()\n")
	b.WriteString("    case $prev in\n")
	for i := range w.Options {
		o := &w.Options[i]
		flags = append(flags, "-"+o.Flag)
		if !o.Arg {
			continue
		}
		reply := ""
		if find := wrappedNames(o); find != "" {
			reply = fmt.Sprintf("COMPREPLY=($(compgen -W \"$(%s)\" -- \"$cur\")); ", find)
		}
		fmt.Fprintf(&b, "    -%s) %sreturn ;;\n", o.Flag, reply)
	}
	b.WriteString("    -) ;;\n    esac\n    case $cur in\n")
	fmt.Fprintf(&b, "    -*) COMPREPLY=($(compgen -W '%s' -- \"$cur\")) ;;\n", strings.Join(flags, " "))
	if find := operandNames(w); find != "" {
		fmt.Fprintf(&b, "    *) COMPREPLY=($(compgen -W \"$(%s)\" -- \"$cur\")) ;;\n", find)
	}
	fmt.Fprintf(&b, "    esac\n    return 0\n}\ncomplete -o default -F _muster_%s %[1]s\n", w.Name)
	return b.String()
}

func zshWrapper(w *slurm.Wrapper) string {
	var b strings.Builder
	fmt.Fprintf(&b, "#compdef %s\n# made from its table of options\n_arguments -S", w.Name)
	for i := range w.Options {
		o := &w.Options[i]
		fmt.Fprintf(&b, " \\\n  '-%s[%s]%s'", o.Flag, zshText(o.Means), zshValue(o))
	}
	if find := operandNames(w); find != "" {
		fmt.Fprintf(&b, " \\\n  '*:name:{compadd -- $(%s)}'\n", find)
	} else {
		b.WriteString(" \\\n  '*::: :_default'\n")
	}
	return b.String()
}

// zshValue is what zsh is told of an option's value.
func zshValue(o *slurm.WrapperOption) string {
	if !o.Arg {
		return ""
	}
	if find := wrappedNames(o); find != "" {
		return ":value:{compadd -- $(" + find + ")}"
	}
	return ":value:_default"
}

func fishWrapper(w *slurm.Wrapper) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# completion of %s for fish, made from its table of options\n", w.Name)
	if find := operandNames(w); find != "" {
		fmt.Fprintf(&b, "complete -c %s -f -a %s\n", w.Name, fishText("("+find+")"))
	}
	for i := range w.Options {
		o := &w.Options[i]
		how := "-s"
		if len(o.Flag) > 1 {
			how = "-o"
		}
		fmt.Fprintf(&b, "complete -c %s %s %s", w.Name, how, fishText(o.Flag))
		if o.Arg {
			b.WriteString(" -r")
		}
		if find := wrappedNames(o); o.Arg && find != "" {
			b.WriteString(" -f -a " + fishText("("+find+")"))
		}
		b.WriteString(" -d " + fishText(o.Means) + "\n")
	}
	return b.String()
}
