package operator

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"sync"
	"time"

	"vaultd/internal/durable"
	"vaultd/internal/ingest"
)

const (
	alwaysUsual   = 200 // disposals a day of one drop that are always usual
	usualFactor   = 3   // times the busiest day that are still usual
	halfLifeDays  = 60  // days in which the memory of the busiest day fades by half
	disposalsFile = "disposals.json"
)

// DisposalLimit bounds how much is disposed of without a person: per drop and day no more than a
// few times what its busiest days had. What it remembers lies in a file beside the
// ledger; where that is lost it knows of no busy days and stops earlier.
type DisposalLimit struct {
	dir         string
	now         func() time.Time
	log         *slog.Logger
	AlwaysUsual int // disposals a day of one drop that need no person; set before the first Book

	mu   sync.Mutex
	days map[string]*dayCount // by drop; nil: not read yet; guarded by mu
}

// dayCount is how much of one drop is disposed of.
type dayCount struct {
	Busiest  float64   `json:"busiest"`  // disposals on the busiest day; it halves every halfLifeDays
	Day      time.Time `json:"day"`      // the day that Done is about
	Done     int       `json:"done"`     // disposals on that day
	Approved int       `json:"approved"` // approved by a person and not done yet
}

// NewDisposalLimit returns the limit whose memory lies in dir.
func NewDisposalLimit(dir string, now func() time.Time, log *slog.Logger) *DisposalLimit {
	return &DisposalLimit{dir: dir, now: now, log: log, AlwaysUsual: alwaysUsual}
}

// Book books the sources of a drop that are due, or says with an *ingest.DisposalLimitError why they
// must not go. An error of the disk stops them as well: what was not booked would count
// for nothing.
func (l *DisposalLimit) Book(drop string, due int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.countOf(drop)
	usual := max(l.AlwaysUsual, int(usualFactor*p.Busiest))
	switch {
	case due <= p.Approved:
		p.Approved -= due
	case p.Done+due > usual:
		return &ingest.DisposalLimitError{Drop: drop, Due: due, Usual: usual}
	}
	p.Done += due
	return l.writeFile()
}

// Approve lets n sources of a drop go, by a person's decision.
func (l *DisposalLimit) Approve(drop string, n int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.countOf(drop).Approved = n
	return l.writeFile()
}

// countOf returns the count of a drop, moved on to today. The caller holds mu.
func (l *DisposalLimit) countOf(drop string) *dayCount {
	if l.days == nil {
		l.days = l.readFile()
	}
	today := l.now().UTC().Truncate(24 * time.Hour)
	p := l.days[drop]
	if p == nil {
		p = &dayCount{Day: today}
		l.days[drop] = p
	}
	if !p.Day.Equal(today) {
		p.Busiest = max(p.Busiest, float64(p.Done))
		if days := today.Sub(p.Day).Hours() / 24; days > 0 {
			p.Busiest *= math.Exp2(-days / halfLifeDays)
		}
		p.Day, p.Done = today, 0
	}
	return p
}

func (l *DisposalLimit) readFile() map[string]*dayCount {
	days := map[string]*dayCount{}
	data, err := os.ReadFile(filepath.Join(l.dir, disposalsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return days
	}
	if err == nil {
		err = json.Unmarshal(data, &days)
	}
	if err != nil {
		l.log.Warn("how much is usually disposed of is not known any more; disposals stop earlier", "err", err)
		return map[string]*dayCount{}
	}
	for drop, p := range days {
		if p == nil {
			delete(days, drop)
		}
	}
	return days
}

// writeFile writes what is remembered. The caller holds mu.
func (l *DisposalLimit) writeFile() error {
	data, err := json.MarshalIndent(l.days, "", "  ")
	if err != nil {
		return fmt.Errorf("remember disposals: %w", err)
	}
	dir, err := durable.Open(l.dir, nil)
	if err != nil {
		return fmt.Errorf("remember disposals: %w", err)
	}
	defer dir.Close() // synced by WriteFile
	// After a crash here the file has the counts of before, and the limit stops earlier or at the same number.
	if err := dir.WriteFile(disposalsFile, append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("remember disposals: %w", err)
	}
	return nil
}
