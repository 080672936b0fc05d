package ledger

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"vaultd/internal/test/kit"
)

// What a line says is the same after it was read and written again, and a head never depends on anything but the bytes.
func FuzzLine(f *testing.F) {
	f.Add(FirstLine("L-1", "test", time.Unix(0, 0)).Encode())
	f.Add([]byte(`{"n":2,"at":"2026-11-20T10:00:00.000Z","event":"status-seen","key":"06gzjdqx1hf98hs4xds9252kmc","rev":3,"state":"archived","source":"claimed","uid":0}`))
	f.Add([]byte(`{"n":18446744073709551616}`))
	f.Add([]byte(`{"n":1,"N":2,"flags":"\u2028<\xff"}`))
	f.Add([]byte("}"))
	f.Add([]byte(`{"n":1,"n":2,"size":007,"uid":4294967295,"rev":4294967296,"vault":"V","vault":""}`))
	f.Add([]byte(`{"n":3,"at":"","event":"x","cause":"a b","other":"","flags":"hold","reason":"","ledger":"L","environment":"e"},`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if plain, ok := parsePlain(string(b)); ok {
			var want Line
			err := json.Unmarshal(b, &want)
			kit.Check(t, err == nil && reflect.DeepEqual(plain, want), "%q is %+v, not %+v: %v", b, want, plain, err)
		}
		l, err := ParseLine(b)
		if err != nil {
			return
		}
		once := l.Encode()
		again, err := ParseLine(once)
		if err != nil || !bytes.Equal(again.Encode(), once) || bytes.ContainsAny(once, "\n\r") {
			t.Errorf("%q is read and written as %q (%v), want it unchanged on one line", once, again.Encode(), err)
		}
		h := (Head{}).Next(once)
		kit.Check(t, h == (Head{}).Next(again.Encode()) && h.N == 1, "head = %+v, want line 1 and one hash for one line", h)
	})
}

// Every field of a line is read without the general parser, which takes many times as long.
func TestParsePlain_KnowsEveryField(t *testing.T) {
	var full Line
	for v, i := reflect.ValueOf(&full).Elem(), 0; i < v.NumField(); i++ {
		switch f := v.Field(i); f.Kind() {
		case reflect.String:
			f.SetString("text " + v.Type().Field(i).Name)
		case reflect.Uint64, reflect.Uint32:
			f.SetUint(uint64(i) + 1)
		case reflect.Int64:
			f.SetInt(int64(i) + 1)
		case reflect.Pointer:
			f.Set(reflect.ValueOf(new(int64(i))))
		default:
			t.Fatalf("%s is a %s", v.Type().Field(i).Name, f.Kind())
		}
	}
	got, ok := parsePlain(string(full.Encode()))
	kit.Check(t, ok && reflect.DeepEqual(got, full), "%v: %+v, want %+v", ok, got, full)
}
