package api

import (
	"time"

	"dev.muster/cluster"
)

// Calls of the script for burst buffers besides those of a job's life.
const (
	BurstProcess cluster.BurstCall = "job_process" // looks at what is submitted
	BurstStatus  cluster.BurstCall = "get_status"  // what scontrol show bbstat prints
)

// BurstAsk is one call of a function of the script for burst buffers. A process of its own reads it.
type BurstAsk struct {
	Script string            `json:"script"` // the site's
	Call   cluster.BurstCall `json:"call"`
	Job    *cluster.Job      `json:"job,omitempty"`
	// JobScript is the file of the job's script, or of its --bb; Paths is where the function writes variables.
	JobScript string        `json:"job_script,omitempty"`
	Paths     string        `json:"paths,omitempty"`
	Hurry     bool          `json:"hurry,omitempty"`
	Poll      time.Duration `json:"poll,omitempty"` // between two questions whether a transfer is over
	Args      []string      `json:"args,omitempty"` // of get_status
}

// BurstReply is what came of it.
type BurstReply struct {
	Failed string   `json:"failed,omitempty"` // why, if it failed
	Said   string   `json:"said,omitempty"`   // what the function returned besides
	Env    []string `json:"env,omitempty"`    // the variables
}

// BurstStatusRequest are the words of scontrol show bbstat.
type BurstStatusRequest struct {
	Args []string `json:"args,omitempty"`
}

// BurstStatusResponse is what the script's get_status says.
type BurstStatusResponse struct {
	Text string `json:"text"`
}

// ShowBurstStatus asks the site's script about its burst buffers.
var ShowBurstStatus = Endpoint[BurstStatusRequest, BurstStatusResponse]{
	Method: "POST", Path: "/v1/burst/status", Access: User, Leader: true}
