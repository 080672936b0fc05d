package readings

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/daemon"
	"vaultd/internal/emulator"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/networkapi"
	"vaultd/internal/test/kit"
)

// Companies of the directory in these tests.
const (
	listedSIREN   = "552100554"
	endedSIREN    = "123456789"
	unlistedSIREN = "987654321"
)

// checking is a setup like sending, where the directory is asked about each recipient. The folders go to the companies with the SIRENs; empty: to
// somebody that no directory lists.
func checking(s setup, require bool, sirens ...string) (setup, *networkDrop) {
	s.service = func(c *emulator.Config) {
		c.Network.Directory = []emulator.DirectoryLine{{SIREN: listedSIREN}, {SIREN: endedSIREN, DateTo: "1999-12-30"}}
		c.Network.RequiresListed, c.Readings.Network.Directory = require, "all"
	}
	s, d := sending(s, slices.Repeat([]string{""}, len(sirens))...)
	d.sirens = map[string]string{}
	for n, siren := range sirens {
		d.notes[n] = strings.Repeat(" ", n) // no two are the same document
		d.sirens[folderName(n)] = siren
	}
	d.route = func(r *ingest.Route, client *networkapi.Client) {
		check := kit.Value(networkapi.NewRecipientCheck(client, time.Now))(d.w.t)
		r.Recipients, r.RequiresListed = check, require
	}
	s.daemon = func(dc *daemon.Config) {
		d.add(dc)
		d.config = *dc
	}
	return s, d
}

// entry is that of a folder.
func (d *networkDrop) entry(n int) ledger.Entry {
	for _, e := range d.entries() {
		if e.Folder == folderName(n) {
			return e
		}
	}
	return ledger.Entry{}
}

// asked counts the questions that the directory got.
func (d *networkDrop) asked() (n int) {
	for _, c := range d.w.sentTo(apiHost) {
		if strings.Contains(c.path, "/directory/") {
			n++
		}
	}
	return n
}

func (d *networkDrop) isHeld(n int) bool {
	e := d.entry(n)
	return e.State == ledger.Packaged && e.Cause.Code == ledger.CauseRecipientNotListed && e.Attention() == ledger.RecipientNotListed && e.CountUnusedFiles() == 0
}

// restart ends the daemon and starts it anew, with nothing but what is on disk.
func (d *networkDrop) restart() {
	w := d.w
	w.halt()
	kit.Must(w.t, w.daemon.Close())
	client := d.client(d.config.BaseURL)
	d.config.Routes[ledger.Network] = d.newRoute(client)
	var err error
	w.daemon, err = daemon.Open(context.Background(), d.config)
	kit.Must(w.t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.daemon.Run(ctx) }()
	w.halt = func() {
		stop()
		kit.Want(w.t, "the daemon ended", <-ended, nil)
		w.halt = func() {}
	}
}

// I16, I24: a company without a valid line gets nothing until it has one. Whoever goes elsewhere does not wait for it.
func TestReading_I24_RecipientWithoutALineWaits(t *testing.T) {
	kit.Rows(t, map[string]string{"NoLine": unlistedSIREN, "LineEnded": endedSIREN}, func(t *testing.T, siren string) {
		s, d := checking(setup{}, true, siren, listedSIREN, "")
		d.every = 10 * time.Minute
		virtual(t, s, func(t *testing.T, w *world) {
			began := time.Now()
			if !w.pass(hour/2, time.Second, func() bool { return d.isHeld(0) && isDelivered(d.entry(1)) && isDelivered(d.entry(2)) }) {
				t.Fatalf("%+v", d.entries())
			}
			e := d.entry(0)
			if want := "NOT SENT YET. SIREN " + siren + " has no valid line in the directory (asked "; !strings.HasPrefix(e.Cause.Text, want) || !strings.HasSuffix(e.Cause.Text, "). Check it with the recipient.") {
				t.Errorf("people read %q", e.Cause.Text)
			}
			w.pass(time.Until(began.Add(hour-time.Minute)), time.Minute, never)
			kit.Want(t, "in the first hour it was asked", d.asked(), 2)
			w.pass(14*hour, time.Minute, never)
			if n := d.asked(); n != 5 || !d.isHeld(0) { // after 1, 7 and 13 hours
				t.Errorf("after %v it was asked %d times", time.Since(began), n)
			}
			kit.Must(w.t, w.service.SetDirectory([]emulator.DirectoryLine{{SIREN: siren}}))
			w.pass(7*hour, time.Minute, func() bool { return isDelivered(d.entry(0)) })
			d.rests(hour, isDelivered)
		})
	})
}

// I24: an answer that is no answer never counts as one, and holds no document: the route pauses, people are told, and all goes on by itself.
func TestReading_I24_DirectoryThatFailsPausesTheRoute(t *testing.T) {
	kit.Rows(t, map[string]emulator.Fault{
		"401": {Kind: emulator.Status, Status: 401}, "403": {Kind: emulator.Status, Status: 403}, "404": {Kind: emulator.Status, Status: 404}, "500": {Kind: emulator.Status, Status: 500},
		"503": {Kind: emulator.Status, Status: 503, RetryAfter: time.Minute}, "Garbled": {Kind: emulator.Garble}, "Page": {Kind: emulator.HTML}, "Empty": {Kind: emulator.Empty},
		"Lost": {Kind: emulator.Abort}, "Slow": {Delay: 10 * time.Minute},
	}, func(t *testing.T, f emulator.Fault) {
		ends := virtualStart.Add(hour)
		s, d := checking(setup{faults: func(op string, _ int) emulator.Fault {
			if op == "network-directory" && time.Now().Before(ends) {
				return f
			}
			return emulator.Fault{}
		}}, true, listedSIREN, listedSIREN, unlistedSIREN)
		virtual(t, s, func(t *testing.T, w *world) {
			paused := false
			w.pass(hour, 5*time.Second, func() bool {
				for _, p := range w.daemon.State().Pauses {
					paused = paused || p.Target.String() == "business network" && strings.Contains(p.Cause.Text, "directory of France")
				}
				for n := range 3 {
					e := d.entry(n)
					kit.Need(t, e.CountUnusedFiles() == 0 && e.Cause.Code != ledger.CauseRecipientNotListed, "no answer was taken for one: %+v", e)
				}
				return false
			})
			kit.Check(t, paused && strings.Contains(w.log.String(), "route paused"), "the route did not pause")
			if !w.pass(hour, 5*time.Second, func() bool {
				return isDelivered(d.entry(0)) && isDelivered(d.entry(1)) && d.isHeld(2) && len(w.daemon.State().Pauses) == 0
			}) {
				t.Errorf("%+v, paused %+v", d.entries(), w.daemon.State().Pauses)
			}
			w.proven()
		})
	})
}

// I24: where no document but the one that is held waits, an answer of the directory ends its pause.
func TestReading_I24_PauseOfTheDirectoryEndsWithItsAnswer(t *testing.T) {
	ends := virtualStart.Add(hour)
	s, d := checking(setup{faults: func(op string, _ int) emulator.Fault {
		if op == "network-directory" && time.Now().Before(ends) {
			return emulator.Fault{Kind: emulator.Status, Status: 403}
		}
		return emulator.Fault{}
	}}, true, unlistedSIREN)
	virtual(t, s, func(t *testing.T, w *world) {
		w.pass(hour, time.Second, never)
		p := w.daemon.State().Pauses
		kit.Check(t, len(p) == 1 && p[0].NeedsPerson(), "paused: %+v", p)
		if !w.pass(10*time.Minute, time.Second, func() bool { return d.isHeld(0) && len(w.daemon.State().Pauses) == 0 }) {
			t.Errorf("%+v, paused %+v", d.entries(), w.daemon.State().Pauses)
		}
		w.proven()
	})
}

// I24: a number that the directory does not take is no fault of the account. Its document waits, and nothing else does.
func TestReading_I24_NumberThatTheDirectoryRefuses(t *testing.T) {
	s, d := checking(setup{faults: func(op string, n int) emulator.Fault {
		if op == "network-directory" && n == 1 {
			return emulator.Fault{Kind: emulator.Status, Status: 422}
		}
		return emulator.Fault{}
	}}, true, listedSIREN)
	virtual(t, s, func(t *testing.T, w *world) {
		if !w.pass(10*time.Minute, time.Second, func() bool { return d.isHeld(0) }) || len(w.daemon.State().Pauses) != 0 || !strings.Contains(d.entry(0).Cause.Text, "does not take SIREN "+listedSIREN) {
			t.Errorf("%+v, paused %+v", d.entries(), w.daemon.State().Pauses)
		}
		d.rests(2*hour, isDelivered)
	})
}

// With warn a document is sent whatever the directory says, or does not say, and people are told once.
func TestReading_DirectoryThatOnlyWarns(t *testing.T) {
	kit.Rows(t, map[string]emulator.Fault{"NoLine": {}, "403": {Kind: emulator.Status, Status: 403}, "503": {Kind: emulator.Status, Status: 503, RetryAfter: hour}, "Garbled": {Kind: emulator.Garble}, "Slow": {Delay: hour}}, func(t *testing.T, f emulator.Fault) {
		s, d := checking(setup{faults: func(op string, _ int) emulator.Fault {
			if op == "network-directory" {
				return f
			}
			return emulator.Fault{}
		}}, false, unlistedSIREN)
		virtual(t, s, func(t *testing.T, w *world) {
			d.rests(10*time.Minute, isDelivered)
			kit.Len(t, "paused", w.daemon.State().Pauses, 0)
			kit.Want(t, "messages in the log", strings.Count(w.log.String(), "its recipient is not confirmed"), 1)
		})
	})
}

// A restart in the middle: who is held stays held and is not asked about sooner, and what the directory said before counts no more.
func TestReading_I24_RestartAsksAnew(t *testing.T) {
	s, d := checking(setup{}, true, unlistedSIREN, listedSIREN)
	virtual(t, s, func(t *testing.T, w *world) {
		if !w.pass(10*time.Minute, time.Second, func() bool { return d.isHeld(0) && isDelivered(d.entry(1)) }) {
			t.Fatalf("%+v", d.entries())
		}
		d.restart()
		before := d.asked()
		w.pass(30*time.Minute, time.Second, never)
		if !d.isHeld(0) || d.asked() != before {
			t.Errorf("asked %d times since the restart: %+v", d.asked()-before, d.entry(0))
		}
		d.sirens["out-2"], d.notes = listedSIREN, append(d.notes, "third")
		d.drop("out-2", "R-2", "third")
		kit.Must(w.t, w.service.SetDirectory([]emulator.DirectoryLine{{SIREN: unlistedSIREN}, {SIREN: listedSIREN}}))
		d.rests(2*hour, isDelivered)
		kit.Want(t, "calls since the restart", d.asked()-before, 2)
	})
}

// I24: an answer counts for 24 hours, for all documents to that company.
func TestReading_I24_AnswersOfTheDirectoryLiveADay(t *testing.T) {
	s, d := checking(setup{}, true, listedSIREN)
	virtual(t, s, func(t *testing.T, w *world) {
		d.rests(hour, isDelivered)
		for _, r := range []struct {
			folder string
			after  time.Duration
			asked  int
		}{{"out-1", 22 * hour, 1}, {"out-2", 3 * hour, 2}} {
			w.pass(r.after, time.Minute, never)
			d.sirens[r.folder], d.notes = listedSIREN, append(d.notes, r.folder)
			d.drop(r.folder, r.folder, r.folder)
			d.rests(hour, isDelivered)
			kit.Want(t, r.folder+": asked", d.asked(), r.asked)
		}
	})
}

// I9: the daemon ends while it asks. Nothing was announced, and the next start asks and sends.
func TestReading_I9_EndWhileTheDirectoryIsAsked(t *testing.T) {
	s, d := checking(setup{faults: func(op string, n int) emulator.Fault {
		if op == "network-directory" && n == 1 {
			return emulator.Fault{Delay: 50 * time.Second}
		}
		return emulator.Fault{}
	}}, true, listedSIREN)
	virtual(t, s, func(t *testing.T, w *world) {
		w.pass(20*time.Second, time.Second, never)
		if e := d.entry(0); d.asked() != 1 || e.State != ledger.Packaged || e.Attempt != 0 {
			t.Errorf("asked %d times: %+v", d.asked(), e)
		}
		d.restart()
		d.rests(hour, isDelivered)
		kit.Want(t, "calls", d.asked(), 2)
	})
}

// I2, I24: a document of which something was sent is never held, though its recipient has no line any more, and after a restart either.
func TestReading_I24_WhatWasSentIsNeverHeld(t *testing.T) {
	ends := virtualStart.Add(26 * hour)
	s, d := checking(setup{faults: func(op string, _ int) emulator.Fault {
		if op == "network-send" && time.Now().Before(ends) {
			return emulator.Fault{Kind: emulator.Status, Status: 500}
		}
		return emulator.Fault{}
	}}, true, listedSIREN)
	d.every = 10 * time.Minute
	virtual(t, s, func(t *testing.T, w *world) {
		w.pass(hour, time.Minute, never)
		kit.Must(w.t, w.service.SetDirectory(nil))
		d.restart()
		w.pass(26*hour, time.Minute, func() bool { return isDelivered(d.entry(0)) })
		d.rests(hour, isDelivered)
		kit.Want(t, "calls", d.asked(), 1)
	})
}
