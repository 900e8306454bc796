package gpu

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"dev.muster/wire"
)

// Source is a library that tells of GPUs, NVML say. Its calls may never return.
type Source interface {
	// Scan looks at all GPUs.
	Scan() Scan
	// Loads tells what runs on the GPUs that it sees; nil if it cannot be asked.
	Loads() []Load
	// Set sets a GPU to a value of Settings, unless it has that.
	Set(uuid, name string, want []int) error
	// Events tells what the driver says, waiting at most so long in each call of it; it returns only with an error.
	Events(wait time.Duration, tell func(Event)) error
}

// answer is one line that the helper writes: exactly one field is set. The Hello comes first, before any library is
// loaded; a Scan follows each line that the helper reads, Loads the line "sample", Kept one of setLine; an Event
// comes by itself.
type answer struct {
	Hello bool    `json:"hello,omitempty"`
	Scan  *Scan   `json:"scan,omitempty"`
	Loads *[]Load `json:"loads,omitempty"`
	Kept  *[]Kept `json:"kept,omitempty"`
	Event *Event  `json:"event,omitempty"`
}

// eventWait is how long one wait for the driver's events takes: the library delivers them at once.
const eventWait = time.Second

// Serve is the life of the helper process: it answers each line of in by a look at the GPUs, or a sample of what runs
// on them, and tells the driver's events, until in ends. A call that hangs does not keep it from ending.
func Serve(ctx context.Context, in io.Reader, out io.Writer, src Source) {
	var mu sync.Mutex
	say := func(a answer) {
		line, err := wire.Marshal(&a)
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			_, err = out.Write(append(line, '\n'))
		}
		if err != nil {
			slog.Error("the GPU helper cannot answer", "err", err)
			os.Exit(1)
		}
	}
	say(answer{Hello: true})
	asked := make(chan string)
	go func() {
		var listening atomic.Bool
		var once sync.Once
		for what := range asked {
			if what == sampleLine {
				loads := Loads(ctx, src)
				say(answer{Loads: &loads})
				continue
			}
			if want, ok := strings.CutPrefix(what, setLine); ok {
				kept := set(src, want)
				say(answer{Kept: &kept})
				continue
			}
			s := Look(ctx, src)
			say(answer{Scan: &s})
			if src == nil || s.Source != "nvml" || s.Cause != "" || !listening.CompareAndSwap(false, true) {
				continue
			}
			go func() {
				err := src.Events(eventWait, func(e Event) { say(answer{Event: &e}) })
				once.Do(func() { slog.Warn("the GPU driver's events are not heard; the looks go on", "err", err) })
				listening.Store(false) // until the next look
			}()
		}
	}()
	for lines := bufio.NewScanner(in); lines.Scan(); {
		asked <- lines.Text()
	}
}
