package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"vaultd/internal/config"
	"vaultd/internal/ledger"
)

// noteReport commits that a report of --since-last was written up to a line of the journal.
func (a *app) noteReport(ctx context.Context, cfg config.Config, head string) error {
	line, err := strconv.ParseUint(head, 10, 64)
	if err != nil {
		return fail(exitInternal, fmt.Errorf("read up to which line the report goes: %w", err), "are both of the same version?")
	}
	request := controlRequest{Args: []string{"audit"}, Audit: &auditHandover{Reported: line}}
	return a.runThroughDaemonWithInput(ctx, cfg, request, nil, a.stdout, func(ctx context.Context, v view) error {
		return a.markReported(ctx, v, line)
	})
}

// handedOver remembers for each user up to which line the last report of
// --since-last went that the daemon made for that user. A note that a report
// was written is believed for that line alone: else a member of access.groups
// could empty the next report. After a restart the report is made again.
type handedOver struct {
	mu    sync.Mutex
	lines map[uint32]uint64 // guarded by mu
}

func (h *handedOver) note(uid uint32, line uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines[uid] = line
}

func (h *handedOver) take(uid uint32, line uint64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	was, ok := h.lines[uid]
	delete(h.lines, uid)
	return ok && was == line
}

// markReported commits the line of the journal from which the next report of --since-last goes on.
func (a *app) markReported(ctx context.Context, v view, line uint64) error {
	if a.inside != nil && !a.reports.take(a.uid, line) {
		return usageError{fmt.Errorf("the running vaultd made no report up to line %d for you; make one with vaultd audit --since-last -o FILE.html", line)}
	}
	err := v.ledger.CommitMark(ctx, ledger.Mark{Name: ledger.MarkReported, By: ledger.Operator{UID: a.uid}, At: v.Now, Cause: ledger.ReportedCause(line)}, nil)
	if err != nil {
		return fmt.Errorf("note that the report was written: %w", err)
	}
	return nil
}

// asOf gives the view the time that a report is to have. A time before the journal's last line is refused: the report would hold what
// came later.
func (v view) asOf(text string) (view, error) {
	if text == "" {
		return v, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t, err = time.ParseInLocation(time.DateOnly, text, v.Location)
	}
	if err != nil {
		return v, usageError{fmt.Errorf("--as-of %q is no time; write 2026-11-01 or 2026-11-01T15:04:05+01:00", text)}
	}
	if t.After(v.Now) {
		return v, usageError{fmt.Errorf("--as-of %s is not over yet", text)}
	}
	err = v.ledger.Lines(v.ledger.Head().N, func(_ uint64, stored []byte) error {
		l, err := ledger.ParseLine(stored)
		if err != nil {
			return err
		}
		if at, err := time.Parse(time.RFC3339, l.At); err == nil && t.Before(at) {
			return fail(exitUsage, fmt.Errorf("--as-of %s is before the journal's last line, of %s: the report would hold what came later", text, l.At),
				"choose that time or a later one, or ask a backup of that day")
		}
		return nil
	})
	v.Now = t
	return v, err
}
