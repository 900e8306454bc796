package login

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"dev.muster/agent/webpage"
)

// Passwords are checked without cgo, so libpam cannot be asked within this process. Instead, unix_chkpwd is asked, the
// small program by which PAM's own pam_unix checks passwords of the shadow database; with it come no other modules of
// PAM. A site that keeps passwords elsewhere names a program of its own.

// Bounds of attempts.
const (
	passwordTime = 15 * time.Second // for the program
	failTime     = time.Second      // that a wrong password takes at least
	freeTries    = 5                // that fail before one has to wait
	userWait     = time.Minute      // the most for one name: others must not be able to lock a user out
	addressWait  = 15 * time.Minute // the most for one address
	forgetAfter  = time.Hour
	maxAtOnce    = 4 // checks
	maxCounted   = 1 << 14
)

// checkers are where unix_chkpwd is.
var checkers = []string{"/usr/sbin/unix_chkpwd", "/sbin/unix_chkpwd", "/usr/bin/unix_chkpwd"}

// ErrPassword refuses a name and a password, without saying which of them is wrong.
var ErrPassword = errors.New("the name or the password is not right")

// Passwords checks passwords, and makes who guesses wait.
type Passwords struct {
	mu    sync.Mutex
	tries map[string]tries
	busy  chan struct{}
}

// tries are the recent failures of a name or an address.
type tries struct {
	n    int
	last time.Time
}

// NewPasswords checks for one server.
func NewPasswords() *Passwords {
	return &Passwords{tries: map[string]tries{}, busy: make(chan struct{}, maxAtOnce)}
}

// counted is what failures are counted of, and the longest that it may have to wait.
type counted struct {
	key  string
	most time.Duration
}

// countedOf is what an attempt counts for: the name, and the address where it is known. Directories take a name in any
// case for the same one, and a machine has as many addresses of IPv6 as it likes in its network (/64).
func countedOf(user, from string) []counted {
	if at, err := netip.ParseAddr(from); err == nil && at.Is6() && !at.Is4In6() {
		network, _ := at.WithZone("").Prefix(64)
		from = network.String()
	}
	list := []counted{{"user " + strings.ToLower(user), userWait}, {"at " + from, addressWait}}
	return list[:1+min(len(from), 1)]
}

// wait is how long one must not try yet.
func (p *Passwords) wait(of []counted, now time.Time) (longest time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range of {
		if t := p.tries[c.key]; t.n >= freeTries {
			pause := min(time.Second<<min(t.n-freeTries+1, 20), c.most)
			longest = max(longest, t.last.Add(pause).Sub(now))
		}
	}
	return longest
}

// failed counts a failure.
func (p *Passwords) failed(of []counted, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.tries, func(_ string, t tries) bool { return now.Sub(t.last) > forgetAfter })
	for _, c := range of {
		p.tries[c.key] = tries{p.tries[c.key].n + 1, now}
	}
	for len(p.tries) > maxCounted { // whoever fills it forgets nothing of those who still try
		p.forgetOldest()
	}
}

func (p *Passwords) forgetOldest() {
	oldest := ""
	for key, t := range p.tries {
		if oldest == "" || t.last.Before(p.tries[oldest].last) {
			oldest = key
		}
	}
	delete(p.tries, oldest)
}

// Check lets a user in whose password is right, or says why not; from is the visitor's address, "" where it is not
// known. A wrong password is answered after failTime, while others are checked.
func (p *Passwords) Check(ctx context.Context, s *webpage.Settings, user, password, from string) error {
	wrong, err := p.checkInTurn(ctx, s, user, password, from)
	if !wrong {
		return err
	}
	select {
	case <-time.After(failTime):
	case <-ctx.Done():
	}
	return err
}

// checkInTurn checks a password in one of the places, and counts it if it is wrong.
func (p *Passwords) checkInTurn(
	ctx context.Context, s *webpage.Settings, user, password, from string,
) (wrong bool, err error) {
	select {
	case p.busy <- struct{}{}:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	defer func() { <-p.busy }()
	of := countedOf(user, from) // looked at once those before have been counted
	if wait := p.wait(of, time.Now()); wait > 0 {
		return false, fmt.Errorf("there were too many attempts: try again in %v", wait.Round(time.Second)+time.Second)
	}
	if err := check(ctx, s.Password, user, password); err != nil {
		p.failed(of, time.Now())
		return true, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.tries, of[0].key)
	return false, nil
}

// accountWords are what unix_chkpwd says of accounts, by its exit code, which is PAM's.
var accountWords = map[int]error{
	12: errors.New("the password has expired: change it (passwd) first"),
	13: errors.New("the account has expired"),
}

// fit are names and passwords that no program takes for an option, a path or more than a line.
var fit = regexp.MustCompile("^[^-\x00\n:/ ][^\x00\n:/ ]*\x00[^\x00]+$")

// check asks the program: the name is its argument, the password its input, 0 its word that they are right.
func check(ctx context.Context, how, user, password string) error {
	if !fit.MatchString(user + "\x00" + password) {
		return ErrPassword
	}
	if how != "pam" {
		_, err := ask(ctx, password+"\n", how, user)
		return err
	}
	at := slices.IndexFunc(checkers, func(f string) bool {
		_, err := os.Stat(f)
		return err == nil
	})
	if at < 0 {
		return errors.New("cannot check passwords: unix_chkpwd is not installed (package libpam-modules-bin)")
	}
	if _, err := ask(ctx, password+"\x00", checkers[at], user, "nonull"); err != nil {
		return err
	}
	code, err := ask(ctx, "", checkers[at], user, "chkexpiry")
	return cmp.Or(accountWords[code], err)
}

// ask runs a program that checks passwords.
func ask(ctx context.Context, input, program string, args ...string) (code int, err error) {
	ctx, cancel := context.WithTimeout(ctx, passwordTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdin = strings.NewReader(input)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	if e := (*exec.ExitError)(nil); errors.As(err, &e) && e.Exited() {
		return e.ExitCode(), ErrPassword
	}
	if err != nil {
		return -1, fmt.Errorf("cannot check the password: %w", err)
	}
	return 0, nil
}
