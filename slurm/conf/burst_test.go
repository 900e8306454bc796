package conf

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"dev.muster/cluster"
)

// TestBurst: burst_buffer.conf and its script are read where BurstBufferType names it, and written again.
func TestBurst(t *testing.T) {
	const script = "-- lua\n"
	with := func(conf string) map[string]string {
		return map[string]string{"slurm.conf": "SchedulerParameters=bb_array_stage_cnt=3\n" +
			"BurstBufferType=burst_buffer/lua\n", "burst_buffer.conf": conf,
			"burst_buffer.lua": script}
	}
	plain := cluster.BurstConfig{Directive: "BB_LUA", StageIn: 24 * time.Hour, StageOut: 24 * time.Hour,
		Validate: 5 * time.Second, Other: 5 * time.Minute, Poll: 15 * time.Second, Tasks: 3}
	all := cluster.BurstConfig{Directive: "BB", StageIn: time.Second, StageOut: 2 * time.Second,
		Validate: 3 * time.Second, Other: 4 * time.Second, Poll: 5 * time.Second,
		Deny: []string{"a", "7"}, TearFailed: true, Tasks: 3}
	for _, row := range []struct {
		name, conf string
		want       cluster.BurstConfig
	}{
		{"nothing said", "", plain},
		{"all", "Directive=BB\nStageInTimeout=1\nStageOutTimeout=2\nValidateTimeout=3\nOtherTimeout=4\n" +
			"PollInterval=5\nDenyUsers=a:7\nFlags=TeardownFailure,DisablePersistent\n", all},
	} {
		t.Run(row.name, func(t *testing.T) {
			cfg := put(t, with(row.conf))
			if !reflect.DeepEqual(*cfg.Burst, row.want) || cfg.Scripts["burst_buffer.lua"] != script {
				t.Errorf("got %+v and %q, want %+v", *cfg.Burst, cfg.Scripts, row.want)
			}
			readsBack(t, with(row.conf))
		})
	}
}

// TestBurstTold: what cannot be done is refused, what has no effect is told.
func TestBurstTold(t *testing.T) {
	for _, row := range []struct{ name, slurm, conf, lua, refused, note string }{
		{"no script", "BurstBufferType=burst_buffer/lua", "", "", "there is no burst_buffer.lua", ""},
		{"no type", "", "Directive=X", "x = 1", "", "burst_buffer.conf:1: the line has no effect"},
		{"a script for nothing", "", "", "x = 1", "", "burst_buffer.lua is not called"},
		{"datawarp", "BurstBufferType=burst_buffer/datawarp", "", "", "", "there is no such plugin"},
		{"both lists", "BurstBufferType=burst_buffer/lua", "AllowUsers=a DenyUsers=b", "x = 1", "cannot both", ""},
		{"no time", "BurstBufferType=burst_buffer/lua", "StageInTimeout=soon", "x = 1", "no number of seconds", ""},
		{"too long", "BurstBufferType=burst_buffer/lua", "StageInTimeout=2073601", "x = 1", "no number of seconds", ""},
		{"pools", "BurstBufferType=burst_buffer/lua", "DefaultPool=p", "x = 1", "", "pools are not counted"},
		{"a flag of another", "BurstBufferType=burst_buffer/lua", "Flags=EmulateCray", "x = 1", "", "has no effect"},
		{"no number", "SchedulerParameters=bb_array_stage_cnt=x", "", "", "", "is no number of tasks"},
		{"no key", "BurstBufferType=burst_buffer/lua", "Color=red", "x = 1", "", "not a setting of burst_buffer.conf"},
	} {
		t.Run(row.name, func(t *testing.T) {
			files := map[string]string{"slurm.conf": row.slurm + "\n"}
			if row.conf != "" {
				files["burst_buffer.conf"] = row.conf + "\n"
			}
			if row.lua != "" {
				files["burst_buffer.lua"] = row.lua
			}
			_, notes, err := Load(putDir(t, files))
			if (err == nil) != (row.refused == "") || err != nil && !strings.Contains(err.Error(), row.refused) {
				t.Errorf("refused: %v, want %q", err, row.refused)
			}
			if !strings.Contains(strings.Join(notes, "\n"), row.note) {
				t.Errorf("notes %q, want %q", notes, row.note)
			}
		})
	}
}
