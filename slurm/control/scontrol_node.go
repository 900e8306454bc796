package control

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
)

// nodeActions are the words of update node state=.
var nodeActions = [...]struct {
	word   string
	action cluster.NodeAction
}{{"drain", cluster.NodeDrain}, {"draining", cluster.NodeDrain}, {"drained", cluster.NodeDrain},
	{"down", cluster.NodeSetDown}, {"fail", cluster.NodeFail},
	{"failing", cluster.NodeFail}, {"resume", cluster.NodeResume}, {undrain, cluster.NodeResume},
	{"idle", cluster.NodeResume}, {"power_up", cluster.NodePowerUp}, {"power_down", cluster.NodePowerDown},
	{"power_down_asap", cluster.NodePowerDown}, {"power_down_force", cluster.NodePowerDownForce}}

// undrain is the word that leaves nodes down that are.
const undrain = "undrain"

// leastState is how many letters of a state scontrol takes for the whole of it.
const leastState = 3

// updateNode changes nodes.
func (c *control) updateNode(who front.Setting, rest []front.Setting) int {
	u := nodeUpdate{}
	for _, s := range append([]front.Setting{who}, rest...) {
		switch {
		case s.Bare:
			return c.complain(misread+s.Text+aborted, updateError+noError)
		case s == who:
		case front.IsKey(s.Key, 1, "state") && strings.EqualFold(s.Value, "cancel_reboot"):
			return c.cancelReboot([]string{who.Value})
		default:
			if wrong := u.take(s); wrong != nil {
				return c.complain(wrong...)
			}
		}
	}
	if u.lacksReason() {
		return c.complain("You must specify a reason when DOWNING or DRAINING a node. Request denied")
	}
	if len(rest) == 0 {
		return c.complain(noChanges)
	}
	var err error
	if u.set.Nodes, err = c.nodeList(who.Value); err != nil {
		return c.failed(err, "", updateError)
	}
	if !c.featuresOf(&u.set, u.available, u.active) {
		return c.complain("slurm_update error: Active features not subset of available features")
	}
	if u.word == undrain {
		err = undrainNodes(c, u.set)
	} else {
		err = c.setNodes(u.set)
	}
	if u.word == "idle" && front.IsKind(err, cluster.ErrNodeState) { // they are
		return 0
	}
	if err != nil {
		return c.failed(err, "", updateError)
	}
	return 0
}

// nodeUpdate is what a command line changes of nodes.
type nodeUpdate struct {
	set               cluster.NodeSet
	word              string // for what Action stands
	available, active *[]string
}

// take takes one setting, and says what is wrong with it.
func (u *nodeUpdate) take(s front.Setting) (wrong []string) {
	v := s.Value
	switch {
	case front.IsKey(s.Key, 1, "state"):
		return u.takeState(s)
	case front.IsKey(s.Key, 3, "reason"):
		v = strings.Trim(v, `"'`)
		u.set.Reason = &v
	case front.IsKey(s.Key, 3, "availablefeatures", "features"):
		u.available = listOf(v)
	case front.IsKey(s.Key, 3, "activefeatures"):
		u.active = listOf(v)
	case front.IsKey(s.Key, 3, "topology"):
		v = v[strings.LastIndexByte(v, ':')+1:] // TOPOLOGY:NAME
		u.set.Topology = &v
	case front.IsKey(s.Key, 3, "weight"):
		return u.takeWeight(v)
	case front.IsKey(s.Key, 3, "comment"):
		u.set.Comment = &v
	case front.IsKey(s.Key, 3, "extra"):
		u.set.Extra = &v
	case front.IsKey(s.Key, 5, "resumeafter"):
		return u.takeResume(s)
	case front.IsKey(s.Key, 5, "nodeaddr"):
		u.set.Addr = &v
		return needsName(v)
	case front.IsKey(s.Key, 5, "nodehostname"):
		u.set.Host = &v
		return needsName(v)
	default:
		lines := []string{"Update of this parameter is not supported: " + s.Text, "Request aborted"}
		return append(lines, refusal("node", s.Key)...)
	}
	return nil
}

// takeResume takes the seconds after which the node is to serve again; -1: it is not.
func (u *nodeUpdate) takeResume(s front.Setting) (wrong []string) {
	n, err := strconv.Atoi(s.Value)
	if err != nil || n < -1 {
		return []string{"scontrol: error: Invalid value " + s.Text + " for ResumeAfter"}
	}
	after := time.Duration(n) * time.Second
	u.set.ResumeAfter = &after
	return nil
}

// needsName complains about a name that is none.
func needsName(v string) []string {
	if v != "" {
		return nil
	}
	return []string{updateError + ": Invalid node name specified"}
}

// maxWeight is the greatest weight of a node.
const maxWeight = 1<<32 - 16

func (u *nodeUpdate) takeWeight(v string) (wrong []string) {
	n, err := strconv.ParseInt(v, 10, 64)
	why := ""
	switch {
	case err != nil:
		why = "is not a valid number"
	case n < 0:
		why = "is less than zero"
	case n > maxWeight:
		why = "is greater than " + strconv.Itoa(maxWeight)
	default:
		weight := int(n)
		u.set.Weight = &weight
		return nil
	}
	return []string{"scontrol: error: Weight value (" + v + ") " + why, noChanges}
}

func (u *nodeUpdate) takeState(s front.Setting) (wrong []string) {
	word := strings.ToLower(s.Value)
	if front.IsKey(word, leastState, "future", "noresp") {
		return []string{
			"Invalid input: " + s.Text,
			"Request aborted",
			"why: muster itself finds the nodes that answer; drain a node, or set it down, to keep jobs off it",
		}
	}
	for _, a := range nodeActions {
		least := leastState
		if strings.HasPrefix(a.word, "power_") {
			least = len("power_u")
		}
		if front.IsKey(word, least, a.word) {
			u.set.Action = a.action
			u.word = a.word
			return nil
		}
	}
	return []string{
		"Invalid input: " + s.Text,
		"Request aborted",
		"Valid states are: NoResp DRAIN FAIL FUTURE RESUME POWER_DOWN POWER_UP UNDRAIN",
		"Not all states are valid given a node's prior state",
	}
}

// lacksReason reports whether nodes are taken out of service without a word why.
func (u *nodeUpdate) lacksReason() bool {
	if u.set.Reason != nil && *u.set.Reason != "" {
		return false
	}
	switch u.set.Action {
	case cluster.NodeDrain, cluster.NodeSetDown, cluster.NodeFail:
		return true
	}
	return false
}

// listOf reads a list, which may be empty: then there is to be none of what it lists.
func listOf(v string) *[]string {
	list := append([]string{}, front.SplitList(v)...)
	return &list
}

// featuresOf sets which features nodes have, and which of them are active; false: these are more than what is
// available.
func (c *control) featuresOf(set *cluster.NodeSet, available, active *[]string) bool {
	set.Features, set.Active = available, active
	if available == nil && active == nil {
		return true
	}
	// An error is met again by the change itself.
	resp, _ := front.Call(c.sys, api.ListNodes, api.NodeQuery{Names: set.Nodes})
	for _, n := range resp.Nodes {
		all := n.Inventory.Available()
		have := *cmp.Or(available, &all)
		on := *cmp.Or(active, &n.Inventory.Features)
		if slices.ContainsFunc(on, func(f string) bool { return !slices.Contains(have, f) }) {
			return false
		}
	}
	return true
}

// undrainNodes takes back that nodes are drained, and no more: those that are down stay so.
func undrainNodes(c *control, set cluster.NodeSet) error {
	resp, err := front.Call(c.sys, api.ListNodes, api.NodeQuery{Names: set.Nodes})
	if err != nil {
		return err
	}
	var out []cluster.NodeName
	for _, n := range resp.Nodes {
		switch {
		case n.Down && n.Drain:
			return cluster.Errorf(cluster.Invalid, cluster.ErrNodeState,
				"node %s is down besides: state=resume takes both back, state=down keeps it down", n.Name)
		case !n.Down && (n.Drain || n.Failing):
			out = append(out, n.Name)
		}
	}
	rest := set
	rest.Action = ""
	if _, err = front.Call(c.sys, api.SetNodes, rest); err != nil || len(out) == 0 {
		return err
	}
	return c.setNodes(cluster.NodeSet{Nodes: out, Action: cluster.NodeResume})
}

// setNodes changes nodes. Of a list not all of which can be resumed those are that can, and the last error says
// that some were not.
func (c *control) setNodes(set cluster.NodeSet) error {
	_, err := front.Call(c.sys, api.SetNodes, set)
	if set.Action != cluster.NodeResume || len(set.Nodes) < 2 || !front.IsKind(err, cluster.ErrNodeState) {
		return err
	}
	for _, n := range set.Nodes {
		one := set
		one.Nodes = []cluster.NodeName{n}
		if _, e := front.Call(c.sys, api.SetNodes, one); e != nil {
			err = e
		}
	}
	return err
}
