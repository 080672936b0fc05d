package ledger

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"

	"vaultd/internal/test/kit"
)

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
