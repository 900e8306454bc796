package front

import "fmt"

// signalWords are how a shell names a death by signal.
var signalWords = [...]string{
	1:  "Hangup",
	2:  "Interrupt",
	3:  "Quit",
	4:  "Illegal instruction",
	6:  "Aborted",
	7:  "Bus error",
	8:  "Floating point exception",
	9:  "Killed",
	10: "User defined signal 1",
	11: "Segmentation fault",
	12: "User defined signal 2",
	13: "Broken pipe",
	14: "Alarm clock",
	15: "Terminated",
}

// SignalText is how a shell names a death by signal.
func SignalText(sig int, core bool) string {
	text := fmt.Sprintf("Unknown signal %d", sig)
	if sig > 0 && sig < len(signalWords) && signalWords[sig] != "" {
		text = signalWords[sig]
	}
	if core {
		text += " (core dumped)"
	}
	return text
}
