package rest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// field is a row: a member of a request's body and the words that it becomes.
type field struct {
	name  string
	key   string // the option, or the key of an update
	words func(key string, v any) ([]string, bool)
}

// wordsOf makes the words of all members of an object by a table. A member that no row knows is refused, unless it
// says nothing.
func wordsOf(body map[string]any, rows []field, passed ...string) (words []string, bad string) {
	for name, v := range body {
		k := slices.IndexFunc(rows, func(f field) bool { return f.name == name })
		switch {
		case slices.Contains(passed, name), emptyValue(v):
		case k < 0:
			return nil, name + " cannot be done here: leave it out"
		}
	}
	for _, f := range rows { // in their order
		v, there := body[f.name]
		if !there || v == nil {
			continue
		}
		list, ok := f.words(f.key, v)
		if !ok {
			return nil, fmt.Sprintf("%s: %v is not understood", f.name, v)
		}
		words = append(words, list...)
	}
	return words, ""
}

// emptyValue reports whether a value says nothing: what a client writes that fills in all members.
func emptyValue(v any) bool {
	switch x := v.(type) {
	case nil:
		return true
	case string:
		return x == ""
	case float64:
		return x == 0
	case bool:
		return !x
	case []any:
		return len(x) == 0
	case map[string]any:
		for name, e := range x {
			if name == "set" && e == false || name == "infinite" && e == true {
				return e == false
			}
			if !emptyValue(e) {
				return false
			}
		}
		return true
	}
	return false
}

// number reads a number, or an object of set, infinite and number.
func number(v any) (n float64, set, infinite bool) {
	switch x := v.(type) {
	case float64:
		return x, true, false
	case map[string]any:
		n, _ = x["number"].(float64)
		set, _ = x["set"].(bool)
		infinite, _ = x["infinite"].(bool)
		if _, says := x["set"]; !says && !infinite {
			set = x["number"] != nil
		}
	}
	return n, set, infinite
}

// plainNumber is how a number is written.
func plainNumber(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// asText is KEY=VALUE of a text, a number or a list of texts.
func asText(key string, v any) ([]string, bool) {
	switch x := v.(type) {
	case string:
		if x == "" {
			return nil, true
		}
		return []string{key + x}, true
	case []any:
		if len(x) == 0 {
			return nil, true
		}
		return []string{key + strings.Join(texts(v), ",")}, true
	}
	n, set, infinite := number(v)
	switch {
	case infinite:
		return []string{key + "UNLIMITED"}, true
	case !set:
		return nil, true
	}
	return []string{key + plainNumber(n)}, true
}

// asCount is asText of a number that says nothing where it is 0.
func asCount(key string, v any) ([]string, bool) {
	if n, set, _ := number(v); set && n <= 0 {
		return nil, true
	}
	return asText(key, v)
}

// asFlag is the option alone where the value is true.
func asFlag(key string, v any) ([]string, bool) {
	yes, ok := v.(bool)
	if !yes {
		return nil, ok
	}
	return []string{strings.TrimSuffix(key, "=")}, ok
}

// asYesNo is KEY=1 or 0.
func asYesNo(key string, v any) ([]string, bool) {
	yes, ok := v.(bool)
	return []string{key + map[bool]string{true: "1", false: "0"}[yes]}, ok
}

// asTime is a moment in seconds since 1970.
func asTime(key string, v any) ([]string, bool) {
	n, set, _ := number(v)
	if !set || n <= 0 {
		return nil, true
	}
	return []string{key + time.Unix(int64(n), 0).Format("2006-01-02T15:04:05")}, true
}

// asMemory is megabytes.
func asMemory(key string, v any) ([]string, bool) {
	n, set, _ := number(v)
	if !set {
		return nil, true
	}
	return []string{key + plainNumber(n) + "M"}, true
}

// asGPUs is gres/gpu:TYPE:COUNT as the options of GPUs take it.
func asGPUs(key string, v any) ([]string, bool) {
	text, ok := v.(string)
	if text == "" {
		return nil, ok
	}
	for word := range strings.SplitSeq(text, ",") {
		word = strings.TrimPrefix(strings.TrimPrefix(word, "gres/"), "gres:")
		rest, gpu := strings.CutPrefix(word, "gpu")
		if !gpu {
			return nil, false
		}
		return []string{key + strings.TrimLeft(rest, ":=")}, true
	}
	return nil, true
}

// asGRES is the same of all resources of a node.
func asGRES(key string, v any) ([]string, bool) {
	text, ok := v.(string)
	if text == "" {
		return nil, ok
	}
	return []string{key + strings.NewReplacer("gres/", "", "gres:", "").Replace(text)}, ok
}
