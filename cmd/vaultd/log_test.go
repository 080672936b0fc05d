package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// Times in the log are in the operator's zone with its offset for a person, and in UTC for a program.
func TestLog_TimesHaveTheirZone(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	record := slog.NewRecord(noon, slog.LevelInfo, "told", 0)
	record.Add("since", noon)
	for zone, want := range map[*time.Location]string{berlin: "2026-11-20T14:32:00.000+01:00", time.UTC: "2026-11-20T13:32:00.000Z"} {
		var out bytes.Buffer
		if err := slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: timesIn(zone)}).Handle(t.Context(), record); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); !strings.Contains(got, "time="+want) || !strings.Contains(got, "since="+want) {
			t.Errorf("%v: %s", zone, got)
		}
	}
	var out bytes.Buffer // a buffer is no terminal
	(&app{stderr: &out}).newLogger(false, berlin).Info("told")
	if !strings.Contains(out.String(), `Z","level"`) {
		t.Errorf("%s", &out)
	}
}
