package cli

import (
	"fmt"
	"os"
	"strconv"

	"dev.muster/agent"
	"dev.muster/slurm/front"
	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"
)

// gigabyte is the unit of --image-disk.
const gigabyte = 1 << 30

func imageDiskFlag() cli.Flag {
	return &cli.Int64Flag{Name: "image-disk", EnvVars: []string{"MUSTER_IMAGE_DISK"},
		Usage: "GiB that container images may use on a node (default: half of the file system)"}
}

func imageDisk(c *cli.Context) int64 { return c.Int64("image-disk") * gigabyte }

func imageSizeFlag() cli.Flag {
	return &cli.Int64Flag{Name: "image-size", EnvVars: []string{"MUSTER_IMAGE_SIZE"}, Value: defaultImageSize,
		Usage: "reject container images that unpack to more than `GIB`"}
}

// defaultImageSize is in GiB.
const defaultImageSize = 64

func imageSize(c *cli.Context) int64 { return c.Int64("image-size") * gigabyte }

// imageCommand is muster image, which looks after the images of containers on this node.
func imageCommand() *cli.Command {
	verb := func(name, args, usage string) *cli.Command {
		return &cli.Command{Name: name, Usage: usage, ArgsUsage: args,
			Flags:  []cli.Flag{dataFlag(), imageDiskFlag(), imageSizeFlag()},
			Action: func(c *cli.Context) error { return runImage(c, name) }}
	}
	about := "look after the images of containers on this node"
	return &cli.Command{Name: "image", Usage: about, Subcommands: []*cli.Command{
		verb("ls", "", "list them, the last used first"),
		verb("pull", "IMAGE...", "fetch images before a job wants them"),
		verb("rm", "IMAGE...", "remove images, by what they were asked for as or the beginning of the digest"),
		verb("pin", "IMAGE...", "keep images from being removed to make room"),
		verb("unpin", "IMAGE...", "end that"),
		verb("containers", "", "list the containers that users keep by name (container_scope=global)"),
		verb("drop", "USER/NAME...", "remove such containers; no step should run in them"),
		verb("prune", "", "remove what was long not used, until all fit into --image-disk"),
	}}
}

// runImage becomes the program that knows images.
func runImage(c *cli.Context, name string) error {
	if os.Geteuid() != 0 && c.String("data") == defaultDir() {
		return fmt.Errorf("the images of this node are root's: sudo muster image %s", name)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	store, disk := agent.ImagesIn(c.String("data")), strconv.FormatInt(imageDisk(c), 10)
	size := strconv.FormatInt(imageSize(c), 10)
	words := append([]string{"muster", "internal", "image", name, store, disk, size}, c.Args().Slice()...)
	return fmt.Errorf("execute %s: %w", self,
		unix.Exec(self, words, append(os.Environ(), "MUSTER_SOCKET="+daemonSocket())))
}

// daemonSocket is that of this machine's daemon, which asks other nodes for an image; "" if none runs.
func daemonSocket() string {
	for _, at := range front.Sockets(os.Getenv) {
		if _, err := os.Stat(at); err == nil {
			return at
		}
	}
	return ""
}
