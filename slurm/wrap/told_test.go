package wrap

import "testing"

// TestTold: a manual says what becomes of an option, or why there is none.
func TestTold(t *testing.T) {
	for _, c := range [][3]string{
		{"qsub", "-A VALUE", "sbatch --account=VALUE"}, {"qsub", "-h", "sbatch --hold"},
		{"qsub", "-C VALUE", "refused: directives begin with #PBS"}, {"qsub", "-I", "as in PBS"}, {"bsub", "-o VALUE", "as in LSF"},
		{"bsub", "-q VALUE", "sbatch --partition=VALUE"},
	} {
		found := ""
		for _, o := range OptionTexts(c[0]) {
			if o.Word == c[1] {
				found = o.Means
			}
		}
		if found != c[2] {
			t.Errorf("%s %s: %q, want %q", c[0], c[1], found, c[2])
		}
	}
	for _, w := range Commands() {
		for _, o := range OptionTexts(w.Name) {
			if o.Word == "" || o.Means == "" {
				t.Errorf("%s: %+v", w.Name, o)
			}
		}
	}
	if len(OptionTexts("qdel")) > 0 {
		t.Error("qdel has a table")
	}
}
