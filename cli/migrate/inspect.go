// Package migrate is the part of muster adopt that reads a running Slurm.
package migrate

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"dev.muster/adopt/preview"
	"dev.muster/durable"
	"dev.muster/slurm"
	"dev.muster/slurm/conf"
	"dev.muster/slurm/front"
	"dev.muster/slurm/lua"
	"dev.muster/wire"
	"github.com/urfave/cli/v2"
)

// Inspect returns the command that previews a migration.
func Inspect() *cli.Command {
	return &cli.Command{
		Name: "inspect",
		Usage: "preview a move from Slurm: list settings, plugins and programs, and how muster handles each; " +
			"nothing is changed",
		ArgsUsage: "[DIR]",
		Description: "Without DIR, read the running Slurm: its commands are called from PATH. With DIR, read the " +
			"files there: slurm.conf and the files beside it, sacctmgr dump, crontabs and units.\n" +
			"Exit codes: 0, nothing would be lost; 1, something would be lost; 2, an error.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "json", Usage: "print the report as JSON"},
			&cli.StringFlag{Name: "html", Usage: "also write the report to FILE as a web page"},
		},
		Action: runInspect,
	}
}

// runInspect is muster adopt inspect.
func runInspect(c *cli.Context) error {
	r, err := inspectSite(c)
	if err == nil {
		err = printInspection(c, r)
	}
	if err != nil {
		return cli.Exit(fmt.Sprintf("muster adopt inspect: %v", err), 2)
	}
	if r.Lost > 0 {
		return cli.Exit("", 1)
	}
	return nil
}

func inspectSite(c *cli.Context) (*preview.Report, error) {
	if c.NArg() > 1 {
		return nil, errors.New("too many arguments; name one folder, or none to read the running Slurm")
	}
	s := &preview.Site{Commands: append(slurm.FrontEnds(), slurm.Wrappers()...)}
	read := readLive
	if c.NArg() == 1 {
		read = readFolder
	}
	if err := read(c, s); err != nil {
		return nil, err
	}
	return preview.Make(s), nil
}

func printInspection(c *cli.Context, r *preview.Report) error {
	if file := c.String("html"); file != "" {
		var page bytes.Buffer
		if err := cmp.Or(r.HTML(&page), durable.WriteFile(file, page.Bytes(), 0o600)); err != nil {
			return err
		}
	}
	if !c.Bool("json") {
		return r.Print(front.PlainText(c.App.Writer))
	}
	text, err := wire.Marshal(r)
	if err == nil {
		_, err = fmt.Fprintf(c.App.Writer, "%s\n", text)
	}
	return err
}

// readConf reads slurm.conf and the files beside it.
func readConf(s *preview.Site, file string) (err error) {
	s.Config, s.Notes, s.Fine, s.Refused, err = conf.Inspect(file)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(s.Config.Scripts)) {
		if err := lua.Check(name, s.Config.Scripts[name]); err != nil {
			s.Scripts = append(s.Scripts, err.Error())
		}
	}
	return nil
}

// readFolder reads the files of a folder.
func readFolder(c *cli.Context, s *preview.Site) error {
	dir := c.Args().First()
	s.Source = dir
	file := dir
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		file = filepath.Join(dir, "slurm.conf")
	}
	if err := readConf(s, file); err != nil {
		return err
	}
	for _, f := range scanFiles(s, []string{dir}) {
		switch ext := filepath.Ext(f.Path); {
		case preview.IsDump(f.Text):
			s.Dump = f.Text
		case ext == ".service", ext == ".timer", strings.Contains(filepath.Base(f.Path), "cron"):
			s.Scheduled = append(s.Scheduled, f)
		}
	}
	return nil
}

// schedules are the folders and files with programs that are called by themselves.
var schedules = []string{"/etc/crontab", "/etc/cron.d", "/etc/cron.hourly", "/etc/cron.daily", "/etc/cron.weekly",
	"/etc/cron.monthly", "/var/spool/cron", "/etc/systemd/system", "/usr/lib/systemd/system", "/etc/pam.d"}

// readLive asks a running Slurm.
func readLive(c *cli.Context, s *preview.Site) error {
	t := slurmTools{ctx: c.Context}
	if err := t.check(); err != nil {
		return err
	}
	s.Live = true
	show, err := t.run("scontrol", "show", "config")
	if err != nil {
		return err
	}
	s.Show = show
	file := cmp.Or(os.Getenv("SLURM_CONF"), preview.ReadSetting(show, "slurm_conf"), "/etc/slurm/slurm.conf")
	s.Source = "the running cluster and " + filepath.Dir(file)
	if err := readConf(s, file); err != nil {
		s.Failed = append(s.Failed, err.Error())
	}
	ask := func(to *string, words ...string) {
		text, err := t.run(words...)
		if *to = text; err != nil {
			s.Failed = append(s.Failed, err.Error())
		}
	}
	ask(&s.Nodes, "scontrol", "-a", "-o", "show", "node")
	ask(&s.Jobs, "squeue", "-h", "-a", "-o", "%T")
	ask(&s.Reservations, "scontrol", "-a", "-o", "show", "reservation")
	s.Books = map[string]int{}
	for kind, what := range map[string]string{"accounts": "account", "users": "user", "QOS": "qos",
		"associations": "assoc"} {
		text := ""
		ask(&text, "sacctmgr", "-n", "-P", "show", what)
		s.Books[kind] = strings.Count(text, "\n")
	}
	slices.Sort(s.Failed)
	s.Scheduled = scanFiles(s, schedules)
	return nil
}

// Bounds of what is read.
const (
	scanMaxFiles = 4000
	scanMaxBytes = 256 << 10
)

// scanFiles reads the regular files of some folders. Links are not followed: units are linked to files that are read
// in their own folder.
func scanFiles(s *preview.Site, roots []string) (out []preview.File) {
	for _, root := range roots {
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist):
			case err != nil:
				s.Failed = append(s.Failed, err.Error())
			case len(out) >= scanMaxFiles:
				return filepath.SkipAll
			case d.Type().IsRegular():
				text, err := readScanned(path)
				if err != nil {
					s.Failed = append(s.Failed, err.Error())
					return nil
				}
				out = append(out, preview.File{Path: path, Text: text})
			}
			return nil
		})
	}
	return out
}

// readScanned reads the beginning of a regular file.
func readScanned(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(f, scanMaxBytes))
	if bytes.IndexByte(text, 0) >= 0 {
		return "", err
	}
	return string(text), err
}
