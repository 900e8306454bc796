package conf

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"dev.muster/cluster"
)

// yes reads a key that is on or off, by each of Slurm's words.
func yes(to *bool, key, v string) error {
	switch strings.ToUpper(v) {
	case "YES", "TRUE", "UP", "1":
		*to = true
		return nil
	case "NO", "FALSE", "DOWN", "0":
		*to = false
		return nil
	}
	return fmt.Errorf("%s=%s: want YES or NO", key, v)
}

func number(to *int, key, value string) error {
	if strings.EqualFold(value, "UNLIMITED") {
		*to = 0
		return nil
	}
	v, err := strconv.Atoi(value)
	if err != nil || v < 0 {
		return fmt.Errorf("%s=%s is not a number", key, value)
	}
	*to = v
	return nil
}

// shortMax is the greatest number of 16 bits that has no meaning of its own.
const shortMax = 65533

// shortNumber reads a number of 16 bits.
func shortNumber(to *int, key, value string) error {
	n := 0
	if err := number(&n, key, value); err != nil {
		return err
	}
	if n > shortMax {
		return fmt.Errorf("%s=%s is more than %d", key, value, shortMax)
	}
	*to = n
	return nil
}

// setSeconds reads a number of seconds; INFINITE and -1 are no end of them.
func setSeconds(to **time.Duration, key, value string) error {
	d := time.Duration(cluster.Unlimited)
	if !strings.EqualFold(value, "infinite") && value != "-1" {
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 {
			return fmt.Errorf("%s=%s is not a number of seconds, INFINITE or -1", key, value)
		}
		d = max(time.Duration(n)*time.Second, time.Second)
	}
	*to = &d
	return nil
}

func list(to *[]string, v string) error {
	*to = nil
	if v != "" && !strings.EqualFold(v, "ALL") {
		*to = strings.Split(v, ",")
	}
	return nil
}

func mem(to *cluster.Mem, per cluster.MemPer, key, value string) error {
	v := 0
	err := number(&v, key, value)
	*to = cluster.Mem{Per: per, MB: cluster.MemMB(v)}
	return err
}

func setTime(to *time.Duration, key, value string) error {
	d, ok := limit(value)
	if !ok {
		return fmt.Errorf("%s=%s is not a time", key, value)
	}
	*to = d
	return nil
}

// setMinutes reads a time, rounded up to whole minutes.
func setMinutes(to *time.Duration, key, value string) error {
	var d time.Duration
	if err := setTime(&d, key, value); err != nil {
		return err
	}
	if rest := d % time.Minute; rest > 0 && d != cluster.Unlimited {
		d += time.Minute - rest
	}
	*to = d
	return nil
}

// limit reads M, M:S, H:M:S, D-H, D-H:M, D-H:M:S and UNLIMITED.
func limit(s string) (time.Duration, bool) {
	switch strings.ToUpper(s) {
	case "UNLIMITED", "INFINITE", "-1":
		return cluster.Unlimited, true
	case "NONE":
		return 0, true
	}
	days, rest, hasDays := strings.Cut(s, "-")
	if !hasDays {
		days, rest = "0", s
	}
	parts := strings.Split(rest, ":")
	if len(parts) > 3 {
		return 0, false
	}
	var v [4]int // days and up to three more
	for i, t := range append([]string{days}, parts...) {
		n, err := strconv.Atoi(t)
		if err != nil || n < 0 {
			return 0, false
		}
		v[i] = n
	}
	d := time.Duration(v[0]) * 24 * time.Hour
	switch {
	case hasDays || len(parts) == 3:
		d += time.Duration(v[1])*time.Hour + time.Duration(v[2])*time.Minute + time.Duration(v[3])*time.Second
	default:
		d += time.Duration(v[1])*time.Minute + time.Duration(v[2])*time.Second
	}
	return d, true
}

// perGPU sets what jobs get for each GPU.
func perGPU(to *cluster.PerGPU, key, value string) error {
	n := 0
	if err := number(&n, key, value); err != nil {
		return err
	}
	if key == "defcpupergpu" {
		to.CPUs = n
	} else {
		to.MemMB = cluster.MemMB(n)
	}
	return nil
}
