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
	"dev.muster/cli/migrate"
	"dev.muster/cluster"
	"dev.muster/wire"
	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"
)

// idGap is how many job numbers are left free for the jobs that Slurm starts during the move.
const idGap = 1_000_000

// adoptCommand is what moves a site from Slurm.
func adoptCommand() *cli.Command {
	return &cli.Command{Name: "adopt", Usage: "move from Slurm: preview it, import history, move jobs and nodes",
		Subcommands: append(migrate.NodeCommands(), migrate.Inspect(), migrate.Queue(), &cli.Command{
			Name:      "import",
			Usage:     "import accounts, jobs and steps from a dump of Slurm's accounting database",
			ArgsUsage: "[DUMP]",
			Flags: []cli.Flag{
				&cli.StringFlag{Name: "cluster", Usage: "import this cluster of the database (default: its only one)"},
				&cli.BoolFlag{Name: "dry-run", Usage: "read and check the dump; change nothing"},
				&cli.BoolFlag{Name: "skip-accounts",
					Usage: "import no accounts, users, associations and QOS"},
				&cli.BoolFlag{Name: "replace", Usage: "change accounts, users, associations and QOS that differ in " +
					"muster (default: keep them and list them)"},
				&cli.StringFlag{Name: "shares", Usage: "set the usage of accounts and users from FILE, the output of " +
					"sshare -a -l -P or scontrol show assoc_mgr; DUMP is optional"},
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
			Action: runImport,
		})}
}

// runImport is muster adopt import.
func runImport(c *cli.Context) error {
	alone := c.NArg() == 0 && c.String("shares") != ""
	if c.NArg() != 1 && !alone {
		return errors.New("adopt import: name one file that mysqldump or mariadb-dump wrote, plain, .gz or .zst")
	}
	r := importReport{began: time.Now()}
	shares, err := readShares(c.String("shares"))
	switch {
	case err != nil:
	case alone:
		err = r.importShares(c, shares)
	default:
		err = r.importDump(c, shares)
	}
	if err != nil {
		return fmt.Errorf("adopt import: %w", err)
	}
	return errors.Join(r.print(c), noteLimits(c, r.Accounts))
}

// importReport is what an import has done.
type importReport struct {
	History  *adopt.Report         `json:"-"` // nil: without a dump
	Accounts *adopt.AccountsReport `json:"accounts,omitempty"`
	Usage    *adopt.SharesReport   `json:"usage,omitempty"`
	Seconds  float64               `json:"seconds"`

	began   time.Time
	took    time.Duration // by the history
	refused string        // the file that lists what was not imported
}

// text writes the report as JSON, with the fields of the history at the top.
func (r *importReport) text() (string, error) {
	if r.History == nil {
		text, err := wire.Marshal(r)
		return string(text), err
	}
	text, err := wire.Marshal(struct {
		adopt.Report
		importReport
	}{*r.History, *r})
	return string(text), err
}

// importDump imports accounts and history of a dump, and usage.
func (r *importReport) importDump(c *cli.Context, shares []*adopt.Share) error {
	show := newImportBar()
	defer show.clear()
	src, err := adopt.Open(&dump.File{Path: c.Args().First(), Unzstd: unzstd}, c.String("cluster"), show.scanned)
	if err != nil {
		return err
	}
	if src.Names, err = readNames(c.String("passwd"), c.String("group")); err != nil {
		return err
	}
	known, err := knownImport(c, src.Cluster)
	if err != nil {
		return err
	}
	file, err := openRefused(c, src.Cluster, known != nil && known.Source == src.Mark)
	if err != nil {
		return err
	}
	r.refused = file.Name()
	i := adopt.Importer{Source: src, Gap: uint32(c.Uint("id-gap")), Refused: file, Tell: show.moved}
	if !c.Bool("dry-run") {
		i.Send = func(cmd *cluster.ImportHistory) error {
			_, err := api.Call(c.Context, local(), api.ImportHistory, *cmd)
			return err
		}
	}
	if r.Accounts, err = importAccounts(c, src, file); err == nil {
		began := time.Now()
		report, failed := i.Run(known)
		r.History = &report
		r.took = time.Since(began)
		err = failed
	}
	if err == nil {
		r.Usage, err = setShares(c, shares, file)
	}
	return errors.Join(err, file.Close())
}

// importShares imports usage alone.
func (r *importReport) importShares(c *cli.Context, shares []*adopt.Share) error {
	file, err := openRefused(c, "shares", false)
	if err != nil {
		return err
	}
	r.refused = file.Name()
	r.Usage, err = setShares(c, shares, file)
	return errors.Join(err, file.Close())
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

// openRefused opens the list of what cannot be imported: the one of an import that goes on has more lines added.
func openRefused(c *cli.Context, name string, goesOn bool) (*os.File, error) {
	path := c.String("refused")
	if path == "" {
		path = "muster-refused-" + filepath.Base(name) + ".jsonl"
	}
	how := os.O_TRUNC
	if goesOn {
		how = os.O_APPEND
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|how, 0o600)
}

// print prints what an import has done, and removes a list without lines.
func (r *importReport) print(c *cli.Context) error {
	if c.Bool("json") {
		r.Seconds = time.Since(r.began).Seconds()
		text, err := r.text()
		fmt.Println(text)
		return err
	}
	printAccounts(r.Accounts, c.Bool("dry-run"), r.refused)
	if r.History != nil {
		printHistory(r.History, r.refused, r.took)
	}
	printUsage(r.Usage, c.Bool("dry-run"), r.refused)
	if info, err := os.Stat(r.refused); err != nil || info.Size() > 0 {
		return err
	}
	return os.Remove(r.refused)
}

// printHistory prints what became of the jobs.
func printHistory(r *adopt.Report, refused string, took time.Duration) {
	rate := float64(r.Jobs+r.Steps) / max(took.Seconds(), 0.001)
	switch {
	case r.Already:
		fmt.Printf("cluster %s: this dump was imported before; nothing is new\n", r.Cluster)
	case r.DryRun:
		fmt.Printf("cluster %s of Slurm %s: %d jobs, %d steps and %d reservations can be imported; nothing was changed\n",
			r.Cluster, r.Release, r.Jobs, r.Steps, r.Resvs)
	default:
		fmt.Printf("cluster %s of Slurm %s: imported %d jobs, %d steps and %d reservations in %.1f s, %.0f rows/s\n",
			r.Cluster, r.Release, r.Jobs, r.Steps, r.Resvs, took.Seconds(), rate)
	}
	if r.Resumed > 0 && !r.Already {
		fmt.Printf("resumed behind %d rows that an earlier run imported\n", r.Resumed)
	}
	if r.Refused > 0 {
		fmt.Printf("%d rows cannot be imported; %s lists them with the reasons\n", r.Refused, refused)
	}
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
