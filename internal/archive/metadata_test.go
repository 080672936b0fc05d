package archive

import (
	"reflect"
	"testing"

	"vaultd/internal/test/kit"
)

// plainSeeds are metadata that is plain, and metadata that only looks so.
var plainSeeds = []string{
	`{}`, `{"documentType":"Invoice"}`, `{"documentType":"Invoice","documentId":"R-1","documentDate":"2026-10-31T00:00:00Z","senderName":"Müller & Söhne","senderIds":["DE1","DE2"],` +
		`"recipientName":"Acme","recipientIds":["AT1"],"currencyCode":"EUR","buyerReferenceId":"b","buyerReferenceType":"t","amount":9007199254740993.10,"tradingPartner":"p","flowDirection":"sending"}`,
	`{"amount":-0.50}`, `{"amount":0}`, `{"amount":01}`, `{"amount":1.}`, `{"amount":.5}`, `{"amount":-}`, `{"amount":1e3}`, `{"amount":1-2}`, `{"amount":null}`, `{"amount":"1"}`, `{"amount":1`,
	`{"documentId":"a\u0062"}`, `{"documentId":"a\"b"}`, "{\"documentId\":\"a\tb\"}", "{\"documentId\":\"\xff\"}", `{"documentId":null}`, `{"documentId":""}`, `{"documentId":"open`,
	`{"documentId":"1","documentType":"Invoice"}`, `{"documentId":"1","documentId":"2"}`, `{"DOCUMENTID":"1"}`, `{"later":"1","documentId":"2"}`, `{"documentId":"1",}`, `{,"documentId":"1"}`,
	`{"senderIds":[]}`, `{"senderIds":["1",]}`, `{"senderIds":["1"}`, `{"senderIds":["1" ,"2"]}`, `{"senderIds":null}`, `{"senderIds":"1"}`, ` {}`, `{} `, `{"documentId": "1"}`, ``, `[`, `{`,
	`{"documentId":"1","additionalParameters":[{"key":"k","value":"v"}],"tradingPartner":"p"}`, `{"receivingEmailAddress":"ap@in.example"}`, `{"documentId":"1"}{"documentId":"2"}`,
}

// I10: what is read in one go is exactly what encoding/json reads; most metadata is read so.
func FuzzParseMetadata_I10_PlainAsTheDecoderReads(f *testing.F) {
	for _, s := range plainSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, ok := parsePlainMetadata(b)
		if !ok {
			return
		}
		want, err := parseMetadata(b)
		kit.Check(t, err == nil && reflect.DeepEqual(got, want),
			"%q: read as %+v, encoding/json reads %+v (%v)", b, got, want, err)
	})
}

func TestParseMetadata_MostIsPlain(t *testing.T) {
	for i, s := range plainSeeds {
		_, ok := parsePlainMetadata([]byte(s))
		kit.Check(t, ok == (i < 5) || s == `{"documentId":""}`, "%s: plain is %v", s, ok)
	}
	d := Document{Type: "Invoice", Number: "R-1", Date: "2026-10-31T00:00:00Z", SenderName: "Müller & Söhne", SenderIDs: []string{"DE1"}, RecipientName: "Acme", Currency: "EUR", Amount: "119.00"}
	if back, ok := parsePlainMetadata(d.Metadata()); !ok || !reflect.DeepEqual(back, d) {
		t.Errorf("%v: %+v, want ok, back = %v", ok, back, d)
	}
}

func BenchmarkParseMetadata(b *testing.B) {
	meta := []byte(plainSeeds[2])
	for name, parse := range map[string]func([]byte) (Document, error){"plain": ParseMetadata, "any": parseMetadata} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				kit.Value(parse(meta))(b)
			}
		})
	}
}
