package strictjson

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"vaultd/internal/test/kit"
)

var form = Form{Depth: 4, Values: 20, Again: "Export it again", Currency: "currencyId"}

// I10: each value keeps its own bytes, numbers digit for digit.
func TestParse_I10_PlacesOfValues(t *testing.T) {
	src := []byte("{\"a\" : [1.50 , \"x\\u00e4\"] ,\n \"b\":{\"c\":null,\"c\":9007199254740993.10 } }\n")
	v, repeated, bad := Parse(src, form)
	kit.Need(t, bad == nil && len(repeated) == 1 && repeated[0].Key == "c", "got %+v, %+v", repeated, bad)
	line, column := Place(src, repeated[0].At)
	kit.Want(t, "place of the second c", [2]int{line, column}, [2]int{2, 16})
	at := func(v *Value) string { return string(src[v.At:v.End]) }
	kit.Want(t, "the whole", at(v), strings.TrimSuffix(string(src), "\n"))
	kit.Want(t, "list", at(v.Find("a")), `[1.50 , "x\u00e4"]`)
	kit.Want(t, "number", at(v.Find("a").Items[0]), "1.50")
	kit.Want(t, "text", v.Find("a").Items[1].Text, "xä")
	kit.Want(t, "second of two", at(v.Find("b").Find("c")), "9007199254740993.10")
	kit.Want(t, "text of a number", v.Find("b").FindText("c"), "")
}

func TestParse_I21_Bounds(t *testing.T) {
	for src, want := range map[string]string{
		strings.Repeat("[", 100_000):            "brackets nested deeper than 4",
		"[[[[1]]]]":                             "",
		"[" + strings.Repeat("1,", 19) + "1]":   "more than 20 values",
		"[" + strings.Repeat("1,", 18) + "1]\n": "",
	} {
		got := ""
		if _, _, bad := Parse([]byte(src), form); bad != nil {
			got = bad.Text
		}
		kit.Want(t, "fault", got, want)
	}
}

func TestPlace(t *testing.T) {
	for src, want := range map[string][2]int{"x": {1, 1}, "a\nx": {2, 1}, "a\r\nx": {2, 1}, "a\rx": {2, 1}, "\n\r\n\rüx": {4, 2}} {
		line, column := Place([]byte(src), strings.Index(src, "x"))
		kit.Want(t, src, [2]int{line, column}, want)
	}
}

// Parse takes what encoding/json takes, apart from invalid UTF-8, half
// characters and the bounds.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "{}", `{"a":[1,-0.5e+3,null,true]}`, `"\ud83d\ude00"`, `"\ud83d"`, "\xff", `{“a”:1}`, `[1,]`, "01", "1.", "\"\x00\"", `{"a":1}x`} {
		f.Add([]byte(s))
	}
	wide := Form{Depth: 1000, Values: 1 << 20}
	f.Fuzz(func(t *testing.T, src []byte) {
		v, _, bad := Parse(src, wide)
		if bad != nil {
			kit.Check(t, bad.At >= 0 && bad.At <= len(src) && bad.Text != "", "fault %+v", bad)
			allowed := !json.Valid(src) || !utf8.Valid(src) || bytes.Contains(src, []byte(`\u`)) || strings.HasPrefix(bad.Text, "brackets nested")
			kit.Check(t, allowed, "refused %q: %s", src, bad.Text)
			return
		}
		kit.Check(t, json.Valid(src) && utf8.Valid(src), "took %q", src)
		checkPlaces(t, src, v)
	})
}

func checkPlaces(t *testing.T, src []byte, v *Value) {
	kit.Check(t, json.Valid(src[v.At:v.End]), "value at %d of %q ends at %d", v.At, src, v.End)
	for _, item := range v.Items {
		checkPlaces(t, src, item)
	}
	for _, m := range v.Members {
		checkPlaces(t, src, m.Value)
	}
}
