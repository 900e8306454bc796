package gpu

import (
	"slices"
	"strings"
)

// families are words of product names that are part of the name after them: GeForce RTX 4090 is an rtx_4090.
var families = []string{"rtx", "gtx", "titan", "quadro"}

// editions are words after a number that make it another product.
var editions = []string{"ada", "ti", "super", "blackwell"}

// TypeName makes the short type name of a product name, by which GPUs are asked for: "NVIDIA H100 80GB HBM3" is
// h100, "NVIDIA GeForce RTX 4090" rtx_4090, "Tesla V100-SXM2-16GB" v100, "AMD Instinct MI300X" mi300x.
func TypeName(model string) string {
	words := strings.FieldsFunc(strings.ToLower(model), func(r rune) bool { return r == ' ' || r == '-' || r == '/' })
	for i, w := range words {
		if slices.Contains(families, w) {
			return family(words[i:])
		}
		if isModel(w) {
			return w
		}
	}
	return strings.Join(words, "_")
}

// family names a product by its family's word and number: rtx_4090, rtx_a6000, rtx_6000_ada, gtx_1080_ti.
func family(words []string) string {
	n := 1
	for n < len(words) && (slices.Contains(families, words[n]) || words[n] == "pro") { // quadro rtx 6000, rtx pro 6000
		n++
	}
	if words[n-1] != "rtx" || n == 1 || words[0] != "titan" { // the number; a titan rtx has none
		n = min(n+1, len(words))
	}
	for n < len(words) && slices.Contains(editions, words[n]) {
		n++
	}
	return strings.Join(words[:n], "_")
}

// isModel tells a model's word, one to three letters before digits (h100, gb200, mi300x, l40s), from a size (80gb).
func isModel(w string) bool {
	letters := strings.IndexFunc(w, func(r rune) bool { return r < 'a' || r > 'z' })
	return letters >= 1 && letters <= 3 && w[letters] >= '0' && w[letters] <= '9' && !strings.HasPrefix(w, "sxm") && !strings.HasPrefix(w, "hbm")
}

// MIGType is the type name of a slice of a GPU: a100_3g.20gb.
func MIGType(model, profile string) string { return TypeName(model) + "_" + profile }
