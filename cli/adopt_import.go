package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dev.muster/adopt"
	"dev.muster/adopt/dump"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/wire"
	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"
)

// idGap is how many job numbers are left free for the jobs that Slurm starts during the move.
const idGap = 1_000_000

// adoptCommand is what moves a site from Slurm.
func adoptCommand() *cli.Command {
	return &cli.Command{Name: "adopt", Usage: "move from Slurm: import its accounts and the history of its jobs",
		Subcommands: []*cli.Command{{
			Name:      "import",
			Usage:     "import accounts, jobs and steps from a dump of Slurm's accounting database",
			ArgsUsage: "DUMP",
			Flags: []cli.Flag{
				&cli.StringFlag{Name: "cluster", Usage: "import this cluster of the database (default: its only one)"},
				&cli.BoolFlag{Name: "dry-run", Usage: "read and check the dump; change nothing"},
				&cli.BoolFlag{Name: "skip-accounts",
					Usage: "import no accounts, users, associations and QOS"},
				&cli.BoolFlag{Name: "replace", Usage: "change accounts, users, associations and QOS that differ in " +
					"muster (default: keep them and list them)"},
				&cli.BoolFlag{Name: "json", Usage: "print the report as JSON"},
				&cli.UintFlag{Name: "id-gap", Value: idGap,
					Usage: "leave N job numbers free above the highest imported one"},
				&cli.StringFlag{Name: "refused", Usage: "write rows that cannot be imported to FILE, with the reason " +
					"(default: muster-refused-CLUSTER.jsonl)"},
				&cli.StringFlag{Name: "passwd", Value: "/etc/passwd",
					Usage: "read user names from FILE, the output of getent passwd"},
				&cli.StringFlag{Name: "group", Value: "/etc/group",
					Usage: "read group names from FILE, the output of getent group"},
			},
			Action: importHistory,
		}}}
}

// importHistory is muster adopt import.
func importHistory(c *cli.Context) error {
	if c.NArg() != 1 {
		return errors.New("adopt import: name one file that mysqldump or mariadb-dump wrote, plain, .gz or .zst")
	}
	began := time.Now()
	show := newImportBar()
	src, err := adopt.Open(&dump.File{Path: c.Args().First(), Unzstd: unzstd}, c.String("cluster"), show.scanned)
	if err == nil {
		src.Names, err = readNames(c.String("passwd"), c.String("group"))
	}
	if err != nil {
		show.clear()
		return fmt.Errorf("adopt import: %w", err)
	}
	known, err := knownImport(c, src.Cluster)
	if err != nil {
		show.clear()
		return fmt.Errorf("adopt import: %w", err)
	}
	file, err := openRefused(c.String("refused"), src, known)
	if err != nil {
		return fmt.Errorf("adopt import: %w", err)
	}
	i := adopt.Importer{Source: src, Gap: uint32(c.Uint("id-gap")), Refused: file, Tell: show.moved}
	if !c.Bool("dry-run") {
		i.Send = func(cmd *cluster.ImportHistory) error {
			_, err := api.Call(c.Context, local(), api.ImportHistory, *cmd)
			return err
		}
	}
	accounts, err := importAccounts(c, src, file)
	var report adopt.Report
	if err == nil {
		report, err = i.Run(known)
	}
	show.clear()
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("adopt import: %w", err)
	}
	return errors.Join(printImport(c, report, accounts, file.Name(), time.Since(began)), noteLimits(c, accounts))
}

// unpacking is a program that unpacks a file.
type unpacking struct {
	io.ReadCloser
	cmd  *exec.Cmd
	said bytes.Buffer
}

// Read reads what the program prints, and why it failed if it did.
func (u *unpacking) Read(p []byte) (int, error) {
	n, err := u.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) && u.cmd.Wait() != nil {
		err = errors.New(strings.TrimSpace(u.said.String()))
	}
	return n, err
}

// Close ends the program.
func (u *unpacking) Close() error {
	_ = u.cmd.Process.Kill()
	_ = u.cmd.Wait()
	return nil
}

// unzstd unpacks a file that zstd compressed.
func unzstd(path string) (io.ReadCloser, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	u := &unpacking{cmd: exec.Command(self, "internal", "image", "unzstd", path)}
	u.cmd.Stderr = &u.said
	if u.ReadCloser, err = u.cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	return u, u.cmd.Start()
}

// knownImport asks how far the history of a cluster is taken; nil: not at all.
func knownImport(c *cli.Context, name string) (*cluster.Import, error) {
	if c.Bool("dry-run") {
		return nil, nil
	}
	r, err := api.Call(c.Context, local(), api.ListImports, api.AfterQuery{})
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(r.Imports, func(i *cluster.Import) bool { return i.Cluster == name })
	if i < 0 {
		return nil, nil
	}
	return r.Imports[i], nil
}

// readNames reads the names of users and groups.
func readNames(passwd, group string) (*adopt.Names, error) {
	users, err := os.Open(passwd)
	if err != nil {
		return nil, err
	}
	defer users.Close()
	groups, err := os.Open(group)
	if err != nil {
		return nil, err
	}
	defer groups.Close()
	return adopt.ReadNames(users, groups)
}

// openRefused opens the list of rows that cannot be imported: the one of an import that goes on has more lines added.
func openRefused(path string, src *adopt.Source, known *cluster.Import) (*os.File, error) {
	if path == "" {
		path = "muster-refused-" + filepath.Base(src.Cluster) + ".jsonl"
	}
	how := os.O_TRUNC
	if known != nil && known.Source == src.Mark {
		how = os.O_APPEND
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|how, 0o600)
}

// printImport prints what an import has done.
func printImport(c *cli.Context, r adopt.Report, accounts *adopt.AccountsReport, refused string,
	took time.Duration,
) error {
	if c.Bool("json") {
		text, err := wire.Marshal(struct {
			adopt.Report
			Accounts *adopt.AccountsReport `json:"accounts,omitempty"`
			Seconds  float64               `json:"seconds"`
		}{r, accounts, took.Seconds()})
		fmt.Println(string(text))
		return err
	}
	printAccounts(accounts, r.DryRun, refused)
	rate := float64(r.Jobs+r.Steps) / max(took.Seconds(), 0.001)
	switch {
	case r.Already:
		fmt.Printf("cluster %s: this dump was imported before; nothing is new\n", r.Cluster)
	case r.DryRun:
		fmt.Printf("cluster %s of Slurm %s: %d jobs and %d steps can be imported; nothing was changed\n",
			r.Cluster, r.Release, r.Jobs, r.Steps)
	default:
		fmt.Printf("cluster %s of Slurm %s: imported %d jobs and %d steps in %.1f s, %.0f rows/s\n",
			r.Cluster, r.Release, r.Jobs, r.Steps, took.Seconds(), rate)
	}
	if r.Resumed > 0 && !r.Already {
		fmt.Printf("resumed behind %d rows that an earlier run imported\n", r.Resumed)
	}
	if r.Refused > 0 {
		fmt.Printf("%d rows cannot be imported; %s lists them with the reasons\n", r.Refused, refused)
	}
	if r.Refused == 0 && !r.Already && (accounts == nil || accounts.Kept+accounts.Refused == 0) {
		return os.Remove(refused)
	}
	return nil
}

// importBar tells on a terminal how far an import is.
type importBar struct {
	out         *os.File // nil: no terminal
	began, told time.Time
	first       int64
}

func newImportBar() *importBar {
	b := &importBar{out: os.Stderr}
	if _, err := unix.IoctlGetWinsize(int(b.out.Fd()), unix.TIOCGWINSZ); err != nil {
		b.out = nil
	}
	return b
}

// due reports whether something is to be told now.
func (b *importBar) due() bool {
	if b.out == nil || time.Since(b.told) < 200*time.Millisecond {
		return false
	}
	b.told = time.Now()
	return true
}

// scanned tells how much of the dump is read.
func (b *importBar) scanned(bytes int64) {
	if b.due() {
		fmt.Fprintf(b.out, "\rreading the dump: %.0f MB\033[K", float64(bytes)/1e6)
	}
}

// moved tells how many jobs are done, how fast that is and when it will end.
func (b *importBar) moved(done, all int64) {
	if b.began.IsZero() {
		b.began, b.first = time.Now(), done
	}
	if !b.due() {
		return
	}
	rate := float64(done-b.first) / max(time.Since(b.began).Seconds(), 0.001)
	end := time.Now().Add(time.Duration(float64(all-done) / max(rate, 1) * float64(time.Second)))
	fmt.Fprintf(b.out, "\r%d of %d jobs, %.0f jobs/s, expected end %s\033[K", done, all, rate,
		end.Format(time.TimeOnly))
}

func (b *importBar) clear() {
	if b.out != nil {
		fmt.Fprint(b.out, "\r\033[K")
	}
}
