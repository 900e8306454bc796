package cluster

import (
	"cmp"
	"strconv"
	"strings"
)

// heldText is a stored text that a user's jobs hold, counted once however many of them have it; without a hash it is
// the sum of the user's bytes.
type heldText struct {
	uid   uint32
	hash  BlobHash
	jobs  int
	bytes int64
}

func heldLess(x, y heldText) bool {
	return cmp.Or(cmp.Compare(x.uid, y.uid), cmp.Compare(x.hash, y.hash)) < 0
}

// holdsTexts reports whether the script and environment of a job count as its user's: while it is pending, and until
// the state forgets it if it never ran.
func holdsTexts(j *Job) bool {
	return j.Phase == Pending || j.Phase == Ended && j.Started.IsZero()
}

// holdTexts counts the texts of a job (by 1), or no longer (by -1).
func holdTexts(t *tables, j *Job, by int) {
	if !holdsTexts(j) {
		return
	}
	for _, hash := range [...]BlobHash{j.Spec.Script, j.Spec.Env} {
		if hash != "" {
			holdText(t, j.Spec.UID, hash, by)
		}
	}
}

func holdText(t *tables, uid uint32, hash BlobHash, by int) {
	sum, _ := t.scripts.Get(heldText{uid: uid})
	one, had := t.scripts.Get(heldText{uid: uid, hash: hash})
	sum.uid, one.uid, one.hash = uid, uid, hash
	if !had {
		one.bytes = textBytes(t, hash)
		sum.bytes += one.bytes
	}
	if one.jobs += by; one.jobs > 0 {
		t.scripts.Set(one)
	} else {
		t.scripts.Delete(one)
		sum.bytes -= one.bytes
	}
	if sum.bytes > 0 {
		t.scripts.Set(sum)
	} else {
		t.scripts.Delete(sum)
	}
}

func textBytes(t *tables, hash BlobHash) int64 {
	b, ok := t.blobs.Get(hash)
	if !ok {
		return 0
	}
	return int64(len(b.Text))
}

// defaultScriptBytes is MaxUserScriptBytes where muster.conf does not say.
const defaultScriptBytes = 64 << 20

// MaxUserScriptBytes is how many bytes the scripts and environments of a user's pending jobs may have; below 0: as many
// as there are.
func (c *Config) MaxUserScriptBytes() int64 {
	n, err := ParseBytes(c.Keys["maxuserscriptbytes"])
	if err != nil {
		return defaultScriptBytes
	}
	return n
}

// ParseBytes reads a number of bytes: 64M, 512K, 1G, 1048576, or UNLIMITED, which is -1.
func ParseBytes(text string) (int64, error) {
	upper := strings.TrimSuffix(strings.ToUpper(text), "B")
	if upper == "UNLIMITED" {
		return -1, nil
	}
	shift := 0
	if n := len(upper) - 1; n > 0 {
		shift = 10 * (1 + strings.IndexByte("KMGT", upper[n]))
	}
	if shift > 0 {
		upper = upper[:len(upper)-1]
	}
	n, err := strconv.ParseInt(upper, 10, 64)
	if err != nil || n < 0 || n > 1<<62>>shift {
		return 0, Errorf(Invalid, "", "%q is not a number of bytes, such as 64M, or UNLIMITED", text)
	}
	return n << shift, nil
}

// admitTexts refuses a job whose script and environment are more than its user may have pending.
func admitTexts(t *tx, spec *JobSpec) error {
	most := t.config.MaxUserScriptBytes()
	if most < 0 {
		return nil
	}
	sum, _ := t.scripts.Get(heldText{uid: spec.UID})
	need := sum.bytes
	for i, hash := range [...]BlobHash{spec.Script, spec.Env} {
		if _, had := t.scripts.Get(heldText{uid: spec.UID, hash: hash}); !had && (i == 0 || hash != spec.Script) {
			need += textBytes(t.tables, hash)
		}
	}
	if need <= max(most, sum.bytes) {
		return nil
	}
	return tooManyTexts(spec, need, most)
}

func tooManyTexts(spec *JobSpec, need, most int64) error {
	return Errorf(Unavailable, ErrTooBig,
		"the pending jobs of user %s would have %d bytes of scripts and environments, more than "+
			"MaxUserScriptBytes=%d: wait until some of them have started, submit an array in place of many jobs, "+
			"or have large data read from files",
		cmp.Or(spec.User, strconv.FormatUint(uint64(spec.UID), 10)), need, most)
}

// freeTexts are written into the log before it is known whether their user may have more.
const freeTexts = 64 << 10

// CheckTexts refuses a job whose script and environment are more than its user may have pending, before they are in the
// log: Apply refuses it only then.
func CheckTexts(s *Snapshot, spec *JobSpec, script, env BlobText) error {
	most := s.config.MaxUserScriptBytes()
	if most < 0 || len(script)+len(env) <= freeTexts {
		return nil
	}
	sum, _ := s.scripts.Get(heldText{uid: spec.UID})
	need := sum.bytes
	for _, text := range [...]BlobText{script, env} {
		if _, had := s.scripts.Get(heldText{uid: spec.UID, hash: HashBlob(text)}); !had {
			need += int64(len(text))
		}
	}
	if need <= max(most, sum.bytes) {
		return nil
	}
	return tooManyTexts(spec, need, most)
}
