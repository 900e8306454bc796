package images

import (
	"strings"
	"testing"
)

func TestParseRemote(t *testing.T) {
	sum := "sha256:" + strings.Repeat("a", 64)
	for text, want := range map[string]string{
		"ubuntu":                                 " index.docker.io/library/ubuntu:latest",
		"ubuntu:24.04":                           " index.docker.io/library/ubuntu:24.04",
		"docker://ubuntu":                        " index.docker.io/library/ubuntu:latest",
		"nvcr.io#nvidia/pytorch:24.01-py3":       " nvcr.io/nvidia/pytorch:24.01-py3",
		"nvcr.io/nvidia/pytorch:24.01-py3":       " nvcr.io/nvidia/pytorch:24.01-py3",
		"me@nvcr.io#nvidia/pytorch":              "me nvcr.io/nvidia/pytorch:latest",
		"$oauthtoken@nvcr.io#a/b":                "$oauthtoken nvcr.io/a/b:latest",
		"docker://me@hub:5000#a:1":               "me hub:5000/a:1",
		"me@lab/tiny":                            "me index.docker.io/lab/tiny:latest",
		"hub:5000#a@" + sum:                      " hub:5000/a@" + sum,
		"me@hub:5000#a@" + sum:                   "me hub:5000/a@" + sum,
		"":                                       "!no name",
		"@hub#a":                                 "!no name before",
		"#a":                                     "!no registry",
		"a/b#c":                                  "!no registry",
		"podman://a":                             "!only docker://",
		"UPPER":                                  "!could not parse",
		"a b":                                    "!could not parse",
		"hub#../../etc":                          "!could not parse",
		"hub#a@sha256:short":                     "!could not parse",
		"hub:5000#a:" + strings.Repeat("t", 200): "!could not parse",
	} {
		r, err := ParseRemote(text)
		got := ""
		if err == nil {
			got = r.User + " " + r.Ref.Name()
		}
		if why, bad := strings.CutPrefix(want, "!"); bad {
			if err == nil || !strings.Contains(err.Error(), why) {
				t.Errorf("%q: %q, %v, want %q", text, got, err, why)
			}
		} else if got != want {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
}

func TestNetrc(t *testing.T) {
	const text = "# mine\nmachine nvcr.io login $oauthtoken password one\n" +
		"machine auth.docker.io\n login me\n password two\n" +
		"machine nvcr.io login other password three\n"
	for _, c := range []struct{ machine, user, want string }{
		{"nvcr.io", "", "$oauthtoken one"}, {"nvcr.io", "other", "other three"}, {"nvcr.io", "none", ""},
		{"auth.docker.io", "", "me two"}, {"else", "", ""},
	} {
		got := ""
		if a := inNetrc(text, c.machine, c.user); a != nil {
			got = a.Username + " " + a.Password
		}
		if got != c.want {
			t.Errorf("%s as %q: %q, want %q", c.machine, c.user, got, c.want)
		}
	}
}
