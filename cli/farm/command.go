package farm

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"
)

// Commands run many tasks in one allocation.
func Commands() []*cli.Command {
	perTask := []cli.Flag{
		&cli.IntFlag{Name: "cpus-per-task", Aliases: []string{"c"}, Value: 1, Usage: "CPUs of each task"},
		&cli.IntFlag{Name: "gpus-per-task", Aliases: []string{"G"}, Usage: "GPUs of each task"},
		&cli.IntFlag{Name: "most", Usage: "tasks at once on each node (default: as many as fit)"},
		&cli.DurationFlag{Name: "time-limit", Aliases: []string{"t"},
			Usage: "of each attempt, such as 90s (default: none)"},
		&cli.StringFlag{Name: "output", Aliases: []string{"o"},
			Usage: "`FILE` of each task for what it writes, with %t for its number " +
				"(default: all that a task writes, at its end)"},
	}
	return []*cli.Command{
		{Name: "farm", ArgsUsage: "FILE|-",
			Usage: "run each line of a file as a task, in the job that this is called in",
			Flags: append([]cli.Flag{
				&cli.StringFlag{Name: "command",
					Usage: "run `COMMAND` for each line: {} is the line, {1} its first field, {#} its number " +
						"(default: the line is the command)"},
				&cli.IntFlag{Name: "retries", Usage: "further attempts of a task that fails"},
				&cli.BoolFlag{Name: "keep-order", Aliases: []string{"k"},
					Usage: "write output in the order of the lines"},
				&cli.StringFlag{Name: "journal", Usage: "write what each attempt took and how it ended to `FILE`"},
				&cli.BoolFlag{Name: "resume", Usage: "leave out what the journal has as done"},
			}, perTask...),
			Action: runFarm},
		{Name: "farm-worker", Usage: "run tasks on one node (muster farm calls it)", Flags: perTask, Action: runWorker},
	}
}

// runWorker runs the tasks of one node.
func runWorker(c *cli.Context) error {
	rank, err := strconv.Atoi(os.Getenv("SLURM_PROCID"))
	if err != nil {
		return errors.New("farm-worker: muster farm runs it, in a step of its own")
	}
	return Work(workerOptions(c), rank, os.Stdin, os.Stdout)
}

func workerOptions(c *cli.Context) WorkerOptions {
	return WorkerOptions{CPUs: c.Int("cpus-per-task"), GPUs: c.Int("gpus-per-task"), Most: c.Int("most"),
		Limit: c.Duration("time-limit"), Output: c.String("output")}
}

// workerWords are the options of a worker as it reads them.
func workerWords(o WorkerOptions) []string {
	return []string{
		"farm-worker",
		"--cpus-per-task=" + strconv.Itoa(o.CPUs),
		"--gpus-per-task=" + strconv.Itoa(o.GPUs),
		"--most=" + strconv.Itoa(o.Most),
		"--time-limit=" + o.Limit.String(),
		"--output=" + o.Output,
	}
}

// checkFarm refuses options that mean nothing.
func checkFarm(c *cli.Context, o WorkerOptions) error {
	switch {
	case c.NArg() != 1:
		return errors.New("usage: muster farm [OPTIONS] FILE|-")
	case o.CPUs < 1 || o.GPUs < 0 || o.Most < 0 || o.Limit < 0 || c.Int("retries") < 0:
		return errors.New("farm: a task gets one CPU or more, and no number or time may be negative")
	case c.Bool("resume") && c.String("journal") == "":
		return errors.New("farm: --resume needs the journal of the run before: --journal FILE")
	case o.Output != "" && !strings.Contains(o.Output, "%t"):
		return fmt.Errorf("farm: --output=%s is one file for all tasks: put %%t where the number of a task belongs",
			o.Output)
	case o.Output != "" && c.Bool("keep-order"):
		return errors.New("farm: --keep-order is of one output, and --output gives each task its own")
	}
	return nil
}

// runFarm starts the workers and gives them tasks.
func runFarm(c *cli.Context) error {
	own := workerOptions(c)
	if err := checkFarm(c, own); err != nil {
		return err
	}
	nodes, err := strconv.Atoi(os.Getenv("SLURM_JOB_NUM_NODES"))
	if err != nil || nodes < 1 {
		return errors.New("farm: it runs tasks in a job: call it in a batch script, or in the shell of salloc")
	}
	list := os.Stdin
	if file := c.Args().First(); file != "-" {
		if list, err = os.Open(file); err != nil {
			return fmt.Errorf("farm: %w", err)
		}
		defer list.Close()
	}
	o := Options{
		Workers:   nodes,
		Template:  c.String("command"),
		Retries:   c.Int("retries"),
		KeepOrder: c.Bool("keep-order"),
	}
	if path := c.String("journal"); path != "" {
		if o.Journal, err = OpenJournal(path, c.Bool("resume")); err != nil {
			return fmt.Errorf("farm: %w", err)
		}
		defer o.Journal.Close()
	}
	began := time.Now()
	sum, err := coordinate(o, own, list)
	took := time.Since(began)
	fmt.Fprintf(os.Stderr,
		"muster farm: %d tasks done, %d failed, %d attempts repeated, %d left out as done before, in %.1f s\n",
		sum.Done, sum.Failed, sum.Retried, sum.Skipped, took.Seconds())
	switch {
	case err != nil:
		return fmt.Errorf("farm: %w", err)
	case sum.Failed > 0:
		return fmt.Errorf("farm: %d tasks failed", sum.Failed)
	}
	return nil
}

// coordinate starts the step of the workers, and runs the tasks by it.
func coordinate(o Options, own WorkerOptions, list io.Reader) (Summary, error) {
	self, err := os.Executable()
	if err != nil {
		return Summary{}, err
	}
	n := strconv.Itoa(o.Workers)
	words := []string{"srun", "--label", "--nodes=" + n, "--ntasks=" + n, "--ntasks-per-node=1", "--cpu-bind=none",
		"--mpi=none", "--kill-on-bad-exit=1", "--job-name=farm", self}
	step := exec.Command(self, append(words, workerWords(own)...)...)
	step.Stderr = os.Stderr
	orders, err := step.StdinPipe()
	if err != nil {
		return Summary{}, err
	}
	reports, err := step.StdoutPipe()
	if err != nil {
		return Summary{}, err
	}
	step.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // it is told of signals once
	if err := step.Start(); err != nil {
		return Summary{}, err
	}
	stop := forwardSignals(step.Process)
	defer stop()
	sum, err := Coordinate(o, Streams{
		Tasks:   list,
		Reports: reports,
		Orders:  orders,
		Out:     os.Stdout,
		Err:     os.Stderr,
	})
	if err != nil && sum.Unfinished > 0 {
		_ = step.Process.Signal(syscall.SIGTERM)
	}
	_, _ = io.Copy(io.Discard, reports) // until the step is over
	if over := step.Wait(); over != nil && err == nil {
		err = fmt.Errorf("the step of the workers: %w", over)
	}
	return sum, err
}

// forwardSignals passes on the signals that end this process.
func forwardSignals(to *os.Process) (stop func()) {
	got := make(chan os.Signal, 4)
	signal.Notify(got, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	go func() {
		for s := range got {
			_ = to.Signal(s)
		}
	}()
	return func() {
		signal.Stop(got)
		close(got)
	}
}
