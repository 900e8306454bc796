package supervisor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// loginTime bounds a login shell: it may read files over the network.
const loginTime = 30 * time.Second

// person is a user as the name service knows one (passwd(5)).
type person struct{ name, home, shell string }

// self is who this process runs as.
func self(ctx context.Context) (person, error) {
	getent, err := ownProgram("getent", "") // there may be no PATH
	if err != nil {
		return person{}, err
	}
	out, err := exec.CommandContext(ctx, getent, "passwd", strconv.Itoa(os.Getuid())).Output()
	f := strings.Split(strings.TrimSpace(string(out)), ":")
	if err != nil || len(f) < 7 {
		return person{}, fmt.Errorf("user %d is not known here: %w", os.Getuid(), errors.Join(err))
	}
	shell := f[6]
	if shell == "" {
		shell = "/bin/sh"
	}
	return person{f[0], f[5], shell}, nil
}

// loginEnv is the environment that the person's login shell starts programs with. It is asked as that user, in the
// place of the task: what login files start is the job's.
func (p person) loginEnv(ctx context.Context) ([]string, error) {
	const mark = "muster-env-begins"
	cmd := exec.CommandContext(ctx, p.shell, "-c", "printf '%s\\0' "+mark+"; exec env -0")
	cmd.Args[0] = "-" + filepath.Base(p.shell) // a login shell
	cmd.Env = append(machineEnv("/etc/environment"), "HOME="+p.home, "SHELL="+p.shell, "USER="+p.name,
		"LOGNAME="+p.name)
	if path := "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"; getenv(cmd.Env, "PATH") == "" {
		cmd.Env = append(cmd.Env, "PATH="+path)
	}
	cmd.Dir = p.home
	if _, err := os.Stat(p.home); err != nil {
		cmd.Dir = "/"
	}
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	_, text, found := bytes.Cut(out, []byte(mark+"\x00")) // what login files print comes before
	if !found {
		return nil, fmt.Errorf("%s of %s did not tell its environment: %w", p.shell, p.name,
			errors.Join(err, ctx.Err()))
	}
	return strings.FieldsFunc(string(text), func(r rune) bool { return r == 0 }), nil
}

// machineEnv reads the variables that all logins have (pam_env(8)).
func machineEnv(file string) (env []string) {
	text, _ := os.ReadFile(file)
	for line := range strings.Lines(string(text)) {
		name, value, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "export "), "=")
		if ok && name != "" && !strings.HasPrefix(name, "#") {
			env = append(env, name+"="+strings.Trim(value, `"'`))
		}
	}
	return env
}

// underLogin puts an environment on top of that of the user's login.
func underLogin(env []string) ([]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), loginTime)
	defer cancel()
	p, err := self(ctx)
	if err != nil {
		return nil, err
	}
	base, err := p.loginEnv(ctx)
	if err != nil {
		return nil, err
	}
	return mergeEnv(base, env...), nil
}
