package readings

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/kit"
)

// I12, I30: a number that tells another event than the one that was kept under it: nobody can say which of the two is right, so it is not
// acknowledged, and people are told.
func TestReading_I12_NoticeThatSaysSomethingElse(t *testing.T) {
	var refuses, other atomic.Bool
	refuses.Store(true)
	s, d := sending(setup{faults: func(of string, _ int) emulator.Fault {
		if of == "network-acknowledge" && refuses.Load() {
			return emulator.Fault{Kind: emulator.Status, Status: 503}
		}
		return emulator.Fault{}
	}}, "emulate:silent")
	d.between = func(r *http.Request, on http.RoundTripper) (*http.Response, error) {
		resp, err := on.RoundTrip(r)
		if err != nil || !other.Load() || !strings.HasSuffix(r.URL.Path, "/notifications") {
			return resp, err
		}
		body, err := io.ReadAll(resp.Body)
		body = bytes.ReplaceAll(body, []byte(`"Delivered"`), []byte(`"DeliveryDelayed"`))
		resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		return resp, err
	}
	virtual(t, s, func(t *testing.T, w *world) {
		w.pass(time.Minute, time.Second, func() bool { all := d.entries(); return len(all) == 1 && all[0].State == ledger.Uploaded })
		id, err := w.service.PublishNotice(emulator.NetworkNotice{BumID: string(d.entries()[0].NetworkNumber()), ResponseCode: "TechnicalAccept", ActionCode: "Delivered"})
		kit.Must(w.t, err)
		w.pass(hour, time.Minute, func() bool { return d.entries()[0].State == ledger.Delivered })
		refuses.Store(false)
		other.Store(true)
		w.pass(hour, time.Minute, never)
		for _, n := range w.service.Notices() {
			kit.Check(t, n.AcknowledgementID != id || !n.IsAcknowledged,
				"acknowledged, although it says something else than what was kept")
		}
		all := w.daemon.State().Incoming
		kit.Check(t, len(all) == 1 && all[0].What == "notices" && all[0].Since.IsZero(), "people are told %+v", all)
		other.Store(false)
		if w.pass(hour, time.Minute, never); len(w.daemon.State().Incoming) > 0 || !w.service.Notices()[len(w.service.Notices())-1].IsAcknowledged {
			t.Errorf("it says the same again: people are told %+v; %+v", w.daemon.State().Incoming, w.service.Notices())
		}
	})
}

// I12: a backlog of other programs that nobody acknowledges hides nothing, and is read in parts that each take little memory.
func TestReading_I12_NoticeBehindABacklog(t *testing.T) {
	s, d := sending(setup{}, "emulate:silent")
	virtual(t, s, func(t *testing.T, w *world) {
		const backlog = 5_000 // together more than one list may hold
		long := strings.Repeat("Wartet auf ein anderes Programm. ", 20)
		for range backlog {
			_, err := w.service.PublishNotice(emulator.NetworkNotice{BumID: "11111111-2222-4333-8444-555555555555", ResponseCode: "TechnicalAccept", ActionCode: "Delivered", Description: long})
			kit.Must(w.t, err)
		}
		w.pass(time.Minute, time.Second, func() bool { all := d.entries(); return len(all) == 1 && all[0].State == ledger.Uploaded })
		_, err := w.service.PublishNotice(emulator.NetworkNotice{BumID: string(d.entries()[0].NetworkNumber()), ResponseCode: "TechnicalAccept", ActionCode: "Delivered"})
		kit.Must(w.t, err)
		if !w.pass(hour, time.Minute, func() bool { return d.entries()[0].State == ledger.Delivered }) {
			t.Errorf("it is %s", d.entries()[0].State)
		}
		kept := 0
		kit.Must(w.t, w.daemon.Ledger().Notices(func(n boltledger.Notice) error {
			if n.IsForeign() {
				kept++
			}
			return nil
		}))
		all := w.daemon.State().Incoming
		kit.Check(t, kept == backlog && len(all) <= 0, "%d are kept; people are told %+v", kept, all)
	})
}

// I20: notifications that do not come in are told to people, once that lasts.
func TestReading_I20_NoticesDoNotComeIn(t *testing.T) {
	var broken atomic.Bool
	broken.Store(true)
	s, d := sending(setup{faults: func(of string, _ int) emulator.Fault {
		if of == "network-notices" && broken.Load() {
			return emulator.Fault{Kind: emulator.Status, Status: 401}
		}
		return emulator.Fault{}
	}}, "")
	virtual(t, s, func(t *testing.T, w *world) {
		w.pass(hour, time.Minute, never)
		all := w.daemon.State().Incoming
		if len(all) != 1 || all[0].Since.IsZero() || time.Since(all[0].Since) < 50*time.Minute || !strings.Contains(all[0].Text, "401") {
			t.Errorf("people are told %+v", all)
		}
		broken.Store(false)
		d.rests(6*hour, isDelivered)
		all = w.daemon.State().Incoming
		kit.Check(t, len(all) <= 0, "it works, and people are told %+v", all)
	})
}
