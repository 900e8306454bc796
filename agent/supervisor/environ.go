package supervisor

import (
	"errors"
	"strings"

	"dev.muster/cluster"
	"golang.org/x/sys/unix"
)

func asErrno(err error, no *unix.Errno) bool { return errors.As(err, no) }

// strerror is the C library's text: Go's begins with a small letter.
func strerror(err error) string {
	var no unix.Errno
	text := err.Error()
	if asErrno(err, &no) {
		text = no.Error()
	}
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

func splitEnv(b cluster.BlobText) []string {
	if len(b) == 0 {
		return nil
	}
	text := strings.TrimSuffix(string(b), "\x00")
	env := make([]string, 0, strings.Count(text, "\x00")+8)
	for v := range strings.SplitSeq(text, "\x00") {
		if v != "" {
			env = append(env, v)
		}
	}
	return env
}

// mergeEnv appends more to base. Of two values of a name the later stays, at the place of the first.
func mergeEnv(base []string, more ...string) []string {
	env := make([]string, 0, len(base)+len(more)+1)
	at := make(map[string]int, len(base)+len(more))
	for i := range len(base) + len(more) {
		v := ""
		if i < len(base) {
			v = base[i]
		} else {
			v = more[i-len(base)]
		}
		name, _, _ := strings.Cut(v, "=")
		if k, ok := at[name]; ok {
			env[k] = v
			continue
		}
		at[name] = len(env)
		env = append(env, v)
	}
	return env
}

func getenv(env []string, name string) string {
	for _, v := range env {
		if rest, ok := strings.CutPrefix(v, name); ok && strings.HasPrefix(rest, "=") {
			return rest[1:]
		}
	}
	return ""
}
