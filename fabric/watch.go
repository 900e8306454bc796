package fabric

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/cluster"
	"dev.muster/durable"
	"dev.muster/wire"
)

// Found is what one look tells of the machine's ports: which there are, and what is wrong with them.
type Found struct {
	NICs   []cluster.NIC
	Faults []cluster.Fault
}

// Watch judges the ports of a machine by how they were before. Its methods are to be called one after the other.
type Watch struct {
	sysfs fs.FS
	file  string
	ports map[string]*history // by DEVICE/PORT
	saved map[string]history
	last  Found
}

// NewWatch watches the ports below a /sys tree. The ports are remembered in a file, so that one that does not
// come up after a reboot is missed; "" keeps nothing. A file that cannot be read is an error; removed, all ports
// are taken as new.
func NewWatch(sysfs fs.FS, file string) (*Watch, error) {
	w := &Watch{sysfs: sysfs, file: file, ports: map[string]*history{}}
	b, err := os.ReadFile(file)
	if file == "" || errors.Is(err, fs.ErrNotExist) {
		return w, nil
	}
	if err == nil {
		err = wire.Unmarshal(b, &w.ports)
	}
	if err != nil {
		return nil, fmt.Errorf("read what is known of the machine's ports from %s: %w; remove it to begin again",
			file, err)
	}
	return w, nil
}

// Look is one look at a time. With an error, because the ports could not be read or what they were not be written
// down, it returns what is known nevertheless.
func (w *Watch) Look(at time.Time) (Found, error) {
	readings, err := Look(w.sysfs)
	if err != nil {
		return w.last, err
	}
	var f Found
	now := map[string]*Reading{}
	for i := range readings {
		r := &readings[i]
		key := r.Device + "/" + strconv.Itoa(r.Port)
		now[key] = r
		if w.ports[key] == nil {
			w.ports[key] = &history{}
		}
		f.NICs = append(f.NICs, r.NIC)
	}
	for _, key := range slices.Sorted(maps.Keys(w.ports)) {
		h := w.ports[key]
		h.sees(now[key], at)
		device, port, _ := strings.Cut(key, "/")
		f.Faults = append(f.Faults, h.faults(device, number(port), now[key], readings)...)
	}
	w.last = f
	return f, w.save()
}

// save writes down what is to be remembered, if that has changed.
func (w *Watch) save() error {
	own := map[string]history{}
	for key, h := range w.ports {
		own[key] = history{Rate: h.Rate, Bad: h.Bad, Since: h.Since, Text: h.Text, Fault: h.Fault}
	}
	same := func(a, b history) bool {
		return a.Rate == b.Rate && a.Bad == b.Bad && a.Fault == b.Fault && a.Since.Equal(b.Since)
	}
	if w.file == "" || maps.EqualFunc(own, w.saved, same) {
		return nil
	}
	b, err := wire.Marshal(own)
	if err == nil {
		err = durable.WriteFile(w.file, b, 0o600)
	}
	if err != nil {
		return fmt.Errorf("note what is known of the machine's ports: %w", err)
	}
	w.saved = own
	return nil
}
