package supervisor

import (
	"time"

	"dev.muster/agent/container/progress"
)

// fetching tells the step's srun of an image that takes long. Of several nodes the first tells how far it is.
type fetching struct {
	r     *run
	meter int // a file in memory; see package progress
	began time.Time
	next  time.Duration
	drawn bool
}

func (r *run) fetching(meter int) *fetching {
	return &fetching{r: r, meter: meter, began: time.Now(), next: progress.First}
}

// tick tells what there is to tell now.
func (f *fetching) tick() {
	at := time.Since(f.began)
	if at < f.next {
		return
	}
	c := f.r.spec.Container
	if f.next == progress.First {
		f.r.notice("pyxis: importing docker image: " + c.Image + "\n")
	}
	state := progress.Read(f.meter)
	f.next = at + progress.LineEvery
	switch {
	case !c.First:
	case c.Terminal:
		f.next = at + progress.BarEvery
		f.draw(state)
	case state.Total > 0:
		f.r.notice("pyxis: " + c.Image + ": " + state.Text() + "\n")
	}
}

func (f *fetching) draw(s progress.State) {
	if s.Total > 0 {
		f.r.notice(s.Bar())
		f.drawn = true
	}
}

// end draws the bar once more, of an image that was told of, and ends its line.
func (f *fetching) end() {
	if c := f.r.spec.Container; f.next > progress.First && c.First && c.Terminal {
		f.draw(progress.Read(f.meter))
	}
	if f.drawn {
		f.r.notice("\n")
	}
}
