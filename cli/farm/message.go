package farm

// Messages between the coordinator and the workers, one JSON object per line.

// order is for one worker: the standard input of a step goes to all of its tasks.
type order struct {
	To      int    `json:"to"`
	Task    int    `json:"task"`
	Attempt int    `json:"attempt"`
	Command string `json:"command"`
}

// report is what a worker says: what it can do, a part of a task's output, or how an attempt ended.
type report struct {
	Hello *helloMessage `json:"hello,omitempty"`
	Task  int           `json:"task,omitempty"`
	Out   []byte        `json:"out,omitempty"`
	Err   []byte        `json:"err,omitempty"`
	Done  *doneMessage  `json:"done,omitempty"`
}

// helloMessage is the first that a worker says.
type helloMessage struct {
	Node  string `json:"node"`
	Slots int    `json:"slots"` // tasks that fit at once
	Why   string `json:"why,omitempty"`
}

// doneMessage is how an attempt ended.
type doneMessage struct {
	Code   int    `json:"code"`
	Signal int    `json:"signal,omitempty"`
	Began  int64  `json:"began"`  // Unix time in milliseconds
	Millis int64  `json:"millis"` // that it took
	Late   bool   `json:"late,omitempty"`
	Failed string `json:"failed,omitempty"` // why it could not run
}

// succeeded reports whether the attempt ended with exit code 0.
func (d *doneMessage) succeeded() bool { return d.Code == 0 && d.Signal == 0 && d.Failed == "" }

// maxChunk bounds the output in one message, in bytes.
const maxChunk = 12 << 10
