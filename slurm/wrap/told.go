package wrap

import "strings"

// OptionText is what a manual tells of an option: how it is written, and what becomes of it here.
type OptionText struct {
	Word, Means string
	Names       string // the kind of names that it takes (muster internal names), where no option of sbatch tells
}

// listNames are the kinds of names that the listings' options take.
var listNames = map[string]string{"u": "users", "q": "partitions", "m": "nodes", "P": "wckeys"}

// OptionTexts are the options of a wrapper whose table is shared with others of its kind; none of those that have few.
func OptionTexts(name string) []OptionText {
	switch name {
	case "qsub":
		return told(pbsRows(), "as in PBS", func(j *pbsJob) []string { return j.argv })
	case "qstat":
		return told(statRows(), "as in PBS", nil)
	case "bsub":
		return told(lsfRows(), "as in LSF", func(j *lsfJob) []string { return j.argv })
	case "bjobs":
		return told(lsfListRows(), "as in LSF", nil)
	}
	return nil
}

// told tries each row with values that it may take, and says which options of sbatch come of it.
func told[T any](rows []row[T], usual string, argv func(*T) []string) (out []OptionText) {
	for i := range rows {
		r := &rows[i]
		t := OptionText{Word: "-" + r.flag, Means: usual}
		if r.arg {
			t.Word += " VALUE"
			if argv == nil {
				t.Names = listNames[r.flag]
			}
		}
		for _, value := range [...]string{"VALUE", "1", "n", "select=1", "12:00"} {
			var asked T
			err := r.set(&asked, value)
			if err != nil {
				if way, ok := strings.CutPrefix(err.Error(), "has no counterpart here: "); ok {
					t.Means = "refused: " + way
					break
				}
				continue
			}
			if argv != nil {
				words := strings.Join(argv(&asked), " ")
				if words != "" && (!r.arg || strings.Contains(words, "VALUE")) { // else it does more than that
					t.Means = "sbatch " + words
				}
			}
			break
		}
		out = append(out, t)
	}
	return out
}
