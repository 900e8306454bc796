package migrate

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"github.com/urfave/cli/v2"
)

// PeerFlags returns the options of muster peer add for a running Slurm.
func PeerFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "slurm", Usage: "add the running Slurm `NAME` as a peer: commands with -M NAME " +
			"call its own commands, as the user"},
		&cli.StringFlag{Name: "via", Usage: "with --slurm: call its commands on another host, by ssh: --via ssh HOST"},
		&cli.StringFlag{Name: "rest", Usage: "not supported: use --via"},
		&cli.StringFlag{Name: "bin", Usage: "with --slurm: the folder of its commands (default: found on this host; " +
			"/usr/bin with --via)"},
		&cli.StringFlag{Name: "conf", Usage: "with --slurm: its slurm.conf, if its commands do not find it"},
	}
}

// AddPeer is muster peer add --slurm.
func AddPeer(c *cli.Context) error {
	q, err := slurmRequest(c)
	if err != nil {
		return fmt.Errorf("peer add: %w", err)
	}
	if _, err := api.Call(c.Context, &api.Client{Dial: front.DialLocal}, api.NameSlurm, q); err != nil {
		return err
	}
	fmt.Println(q.Name)
	return nil
}

// notOfSlurm are options of muster peer add that do not fit a Slurm.
const notOfSlurm = "rest token root own"

// slurmRequest reads the options of muster peer add --slurm.
func slurmRequest(c *cli.Context) (q api.SlurmPeerRequest, err error) {
	words, err := takeFlags(c)
	if err != nil {
		return q, err
	}
	if i := slices.IndexFunc(strings.Fields(notOfSlurm), c.IsSet); i >= 0 {
		return q, fmt.Errorf("--%s is not supported for a Slurm; its commands are called here, or by --via ssh HOST",
			strings.Fields(notOfSlurm)[i])
	}
	host, err := slurmHost(c.String("via"), words)
	if err != nil {
		return q, err
	}
	found := "/usr/bin"
	if host == "" {
		found = findSlurm(strings.Split(os.Getenv("PATH"), ":"))
	}
	at := cluster.SlurmPeer{Bin: cmp.Or(c.String("bin"), found), Conf: c.String("conf"), Host: host}
	if at.Bin == "" {
		return q, errors.New("--slurm: no commands of Slurm on this host; name their folder with --bin DIR, " +
			"or another host with --via ssh HOST")
	}
	return api.SlurmPeerRequest{Name: c.String("slurm"), SlurmPeer: at}, nil
}

// slurmHost reads --via ssh HOST, also as one word.
func slurmHost(via string, words []string) (string, error) {
	fields := slices.Concat(strings.Fields(via), words)
	isOption := func(w string) bool { return strings.HasPrefix(w, "-") }
	switch {
	case len(fields) == 0:
		return "", nil
	case slices.ContainsFunc(fields, isOption):
		return "", fmt.Errorf("--via: %q is not a host", strings.Join(fields, " "))
	case via == "":
		return "", fmt.Errorf("unexpected argument: %s; a Slurm is added with --slurm NAME [--via ssh HOST]", words[0])
	case len(fields) != 2 || fields[0] != "ssh":
		return "", fmt.Errorf("--via: %q is not supported; use --via ssh HOST", strings.Join(fields, " "))
	}
	return fields[1], nil
}

// usualSlurm are folders in which sites install Slurm.
const usualSlurm = "/opt/slurm/bin:/usr/local/slurm/bin:/usr/local/bin:/usr/bin"

// findSlurm returns the first folder whose scontrol is not muster's, or "".
func findSlurm(dirs []string) string {
	own, err := os.Stat("/proc/self/exe")
	for _, dir := range append(dirs, strings.Split(usualSlurm, ":")...) {
		info, e := os.Stat(filepath.Join(dir, "scontrol"))
		isProgram := e == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
		if isProgram && filepath.IsAbs(dir) && (err != nil || !os.SameFile(own, info)) {
			return filepath.Clean(dir)
		}
	}
	return ""
}

// PeerPlace returns where a peer is asked, for muster peer ls.
func PeerPlace(p *api.PeerInfo) string {
	if p.Slurm == nil {
		return p.URLs
	}
	return strings.Join(strings.Fields("slurm "+p.Slurm.Host+" "+p.Slurm.Bin), " ")
}
