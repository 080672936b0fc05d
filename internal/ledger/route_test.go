package ledger

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"vaultd/internal/test/kit"
)

// I2: each route has one way to learn what became of a document at most: it asks, it is notified, or nobody tells. Only where nobody can be
// asked may it stay unknown whether a document was delivered; then the cause says where to look, and what each decision does.
func TestRoute_I2_HowItLearnsWhatBecame(t *testing.T) {
	for _, r := range Routes() {
		if r.IsAsked() && r.IsNotified() || r.IsNotified() != (r == Network) || r.IsAsked() != (r == Vault) {
			t.Errorf("%s: asked %t, notified %t", r, r.IsAsked(), r.IsNotified())
		}
		if r.HasVaults() != (r == Vault) || r.PackageEnding() == "" {
			t.Errorf("%s: has vaults %t, packages end with %q", r, r.HasVaults(), r.PackageEnding())
		}
		c := DeliveryUnknown(r, "the upload was never answered")
		for _, want := range []string{"the upload was never answered, ", "vaultd close", "vaultd release"} {
			kit.Check(t, r.IsAsked() || strings.Contains(c.Text, want), "%s: %q is missing in %q", r, want, c.Text)
		}
	}
	if text := DeliveryUnknown(Network, "").Text; strings.Contains(text, "accounts-payable") || strings.Contains(text, "PDF") || !strings.Contains(text, "no double") {
		t.Errorf("text = %q, want it without PDF and accounts-payable, and with \"no double\"", text)
	}
}

// I2: what a ledger that was put back knows as taken, or as stopped before it was packed, may be delivered since. It is told what it is, so that
// the same document is recognised; nothing goes again before a person says so, and then it is flagged.
func TestReconcileRequired_I2_WhatWasNeverPackedIsIdentified(t *testing.T) {
	stopped := SentToQuarantine{Cause{Code: "mounted"}}
	for name, before := range map[string][]Event{"Taken": {ReconcileRequired{}}, "Stopped": {stopped, ReconcileRequired{}}} {
		t.Run(name, func(t *testing.T) {
			e := usual(Discovered)
			e.Route = PDF
			e = applied(t, e, before...)
			if !e.IsUnidentified() || e.Cause.Code != CauseDeliveryUnknown {
				t.Fatalf("%s, cause %s, unidentified %v", e.State, e.Cause.Code, e.IsUnidentified())
			}
			e = applied(t, e, sealed, Reconciled{})
			if _, _, due := Due(e); e.State != Quarantined || e.ID != sealed.ID || e.Package != sealed.Package || due {
				t.Fatalf("%s as %s, something is due: %v", e.State, e.ID, due)
			}
			closed := applied(t, e, Closed{byPerson})
			kit.Check(t, closed.InDoubt && closed.ID == sealed.ID, "closed: in doubt %v, as %s", closed.InDoubt, closed.ID)
			if again := applied(t, e, Released{byPerson}); again.State != Packaged || !again.PossibleDouble {
				t.Errorf("released: %s, flagged %v", again.State, again.PossibleDouble)
			}
		})
	}
}

// I2: a decision to send again what may be delivered is no proof that it was not. Closed or refused before it is sent, it stays in doubt, and the same
// document dropped again comes back.
func TestReleased_I2_DoubtOutlivesADecision(t *testing.T) {
	unknown := SentToQuarantine{DeliveryUnknown(PDF, "the upload was never answered")}
	for name, row := range map[string]struct {
		events []Event
		state  State
	}{
		"ReleasedThenClosed":  {[]Event{sealed, unknown, Released{byPerson}, Closed{byPerson}}, Rejected},
		"ReleasedThenRefused": {[]Event{unknown, Released{byPerson}, Refused{Cause{Code: "too-large"}}}, Quarantined},
		"RefusedThenClosed":   {[]Event{unknown, Released{byPerson}, Refused{Cause{Code: "too-large"}}, Closed{byPerson}}, Rejected},
		"RetriedThenClosed":   {[]Event{sealed, Closed{byPerson}}, Rejected},
	} {
		t.Run(name, func(t *testing.T) {
			e := usual(Discovered)
			e.Route = PDF
			if name == "RetriedThenClosed" {
				e.PossibleDouble, e.DuplicateConfirmed = true, true
			}
			e = applied(t, e, row.events...)
			kit.Check(t, e.State == row.state && !e.IsCertainlyRejected() && e.InDoubt == (e.State == Rejected),
				"%s, in doubt %v, cause %s", e.State, e.InDoubt, e.Cause.Code)
		})
	}
	e := usual(Discovered)
	e.Route = PDF
	if e = applied(t, e, sealed, Closed{byPerson}); !e.IsCertainlyRejected() {
		t.Errorf("never sent and closed: %s is certainly rejected: false, want true", e.State)
	}
}

// The bytes of a line are those of json.Marshal, whatever is in it and whichever fields it has: the order and the names of
// the fields stand in the type alone.
func TestLine_I14_BytesOfTheLibrary(t *testing.T) {
	r := rand.New(rand.NewPCG(14, 14))
	texts := []string{"", "archived", "2026-11-20T10:00:00.000Z", "M\u00fcller", "a<b>&c", `quote " and \\`, "\x00\x1f\x7f", "\u2028", "\xff\xfe", "tab\tfeed\n", "~ }{", "\U0001f9fe"}
	for range 20_000 {
		var l Line
		v := reflect.ValueOf(&l).Elem()
		for i := range v.NumField() {
			if r.IntN(2) == 0 {
				continue
			}
			switch f := v.Field(i); f.Kind() {
			case reflect.String:
				f.SetString(texts[r.IntN(len(texts))])
			case reflect.Uint64, reflect.Uint32:
				f.SetUint(uint64(r.Uint32() >> r.IntN(32)))
			case reflect.Int64:
				f.SetInt(r.Int64() >> r.IntN(64))
			case reflect.Pointer:
				uid := int64(r.Uint32() >> r.IntN(32))
				f.Set(reflect.ValueOf(&uid))
			default:
				t.Fatalf("a field of kind %s: the encoder does not know it", f.Kind())
			}
		}
		want := kit.Value(json.Marshal(l))(t)
		got := l.Encode()
		kit.Need(t, string(got) == string(want), "encoded is\n%s, the library says\n%s", got, want)
	}
}

func BenchmarkLine(b *testing.B) {
	uid := int64(1000)
	l := Line{N: 1234567, At: "2026-11-20T10:00:00.000Z", Event: "status-seen", Key: "06gzgbs2d2n43zeqyj2594nkn0", Rev: 7, State: "archived", Source: "claimed",
		ID: "8087dfba-45ef-5a37-ac3c-d5567cfb6d39", Remote: "8087dfba-45ef-5a37-ac3c-d5567cfb6d39", Status: "successful", Time: "2026-11-20T10:00:00.000Z", UID: &uid}
	b.Run("Encode", func(b *testing.B) {
		for b.Loop() {
			l.Encode()
		}
	})
	b.Run("Library", func(b *testing.B) {
		for b.Loop() {
			_, _ = json.Marshal(l)
		}
	})
}
