package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
)

// forgetVariable removes a variable from this process: programs that it starts do not get it, and /proc/PID/environ
// no longer shows its value.
func forgetVariable(name string) error {
	if _, set := os.LookupEnv(name); !set {
		return nil
	}
	return errors.Join(os.Unsetenv(name), blankVariable(name))
}

// blankVariable overwrites the value of a variable in the memory that the kernel shows as the environment. Strings
// of package os may lie there: copy the value before.
func blankVariable(name string) error {
	begin, end, err := environPlace()
	if err != nil {
		return fmt.Errorf("find the environment: %w", err)
	}
	mem, err := os.OpenFile("/proc/self/mem", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer mem.Close()
	text := make([]byte, end-begin)
	if _, err := mem.ReadAt(text, begin); err != nil {
		return fmt.Errorf("read the environment: %w", err)
	}
	at := begin
	for one := range bytes.SplitAfterSeq(text, []byte{0}) {
		value, found := bytes.CutPrefix(one, []byte(name+"="))
		if found && len(value) > 0 {
			from := at + int64(len(one)-len(value))
			if _, err := mem.WriteAt(make([]byte, len(value)), from); err != nil {
				return fmt.Errorf("overwrite the environment: %w", err)
			}
		}
		at += int64(len(one))
	}
	return nil
}

// environPlace returns where the kernel looks for the environment of this process: env_start and env_end of
// proc_pid_stat(5).
func environPlace() (begin, end int64, err error) {
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return 0, 0, err
	}
	const envStart = 50 // the field's number; the first behind the name in brackets is 3
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < envStart-1 {
		return 0, 0, errors.New("/proc/self/stat is too short")
	}
	_, err = fmt.Sscan(fields[envStart-3]+" "+fields[envStart-2], &begin, &end)
	if err == nil && (begin == 0 || end < begin) {
		err = errors.New("/proc/self/stat does not tell where it is")
	}
	return begin, end, err
}
