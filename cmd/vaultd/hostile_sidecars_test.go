package main_test

import (
	"fmt"
	"strings"
	"unicode/utf16"
)

// sidecar makes an invoice with these bytes as its sidecar.
func sidecar(raw string) func(y *yard, at string) {
	return spoilt(func(y *yard, at string) {
		y.write(at+"/metadata.json", strings.ReplaceAll(raw, "N-", fmt.Sprint("N-", y.next, "-")))
	})
}

// fields makes a whole sidecar and adds to it.
func fields(more string) func(y *yard, at string) {
	return sidecar(`{"documentType": "Invoice", "documentId": "N-1", "documentDate": "2026-10-31"` + more + `}`)
}

func utf16le(s string) string {
	b := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(s)) {
		b = append(b, byte(u), byte(u>>8))
	}
	return string(b)
}

func hostileSidecars() []hostile {
	const whole = `{"documentType": "Invoice", "documentId": "N-1", "documentDate": "2026-10-31"}`
	in := func(s ...string) []string { return append(s, "metadata.json") }
	return []hostile{
		{name: "S empty", make: sidecar(""), want: returns, says: in("is empty")},
		{name: "S blank", make: sidecar(" \r\n\t"), want: returns, says: in("is empty")},
		{name: "S BOM alone", make: sidecar("\ufeff"), want: returns, says: in("is empty")},
		{name: "S BOM", make: sidecar("\ufeff" + whole), want: archives},
		{name: "S UTF-16", make: sidecar(utf16le(whole)), want: returns, says: in("UTF-16", "encoding UTF-8")},
		{name: "S Latin-1", make: fields(", \"senderName\": \"M\xfcller\""), want: returns, says: in("not UTF-8")},
		{name: "S NUL byte", make: fields(", \"senderName\": \"a\x00b\""), want: returns, says: in("control character")},
		{name: "S NUL escape", make: fields(`, "senderName": "a\u0000b"`), want: returns, says: in("senderName", "control character")},
		{name: "S half a character", make: fields(`, "senderName": "a\ud800"`), want: returns, says: in("half a character")},
		{name: "S large", make: sidecar(strings.Repeat(" ", 1_000_001)), want: returns, says: in("such a file has at most 1.0 MB")},
		{name: "S deep", make: sidecar(strings.Repeat("[", 100_000)), want: returns, says: in("nested deeper than 16")},
		{name: "S deep objects", make: sidecar(strings.Repeat(`{"a":`, 100_000)), want: returns, says: in("nested deeper than 16")},
		{name: "S wide", make: sidecar("[" + strings.Repeat("1,", 400_000) + "1]"), want: returns, says: in("more than 20000 values")},
		{name: "S twice", make: fields(`, "amount": 1, "amount": 2`), want: returns, says: in("amount", "second time")},
		{name: "S twice escaped", make: fields(`, "amount": 1, "\u0061mount": 2`), want: returns, says: in("amount", "second time")},
		{name: "S unknown", make: fields(`, "recipientnames": "x", "__proto__": {}`), want: returns, says: in("is not a field that is known here", `"recipientName"`)},
		{name: "S trailing", make: sidecar(whole + " trailing"), want: returns, says: in("text after the closing bracket")},
		{name: "S two objects", make: sidecar(whole + whole), want: returns, says: in("text after the closing bracket")},
		{name: "S NaN", make: fields(`, "amount": NaN`), want: returns, says: in("is not a number")},
		{name: "S Infinity", make: fields(`, "amount": -Infinity`), want: returns, says: in("is not a number")},
		{name: "S 400 digits", make: fields(`, "amount": ` + strings.Repeat("9", 400)), want: returns, says: in("amount")},
		{name: "S 1e400", make: fields(`, "amount": 1e400`), want: returns, says: in("amount")},
		{name: "S 1e-999999999", make: fields(`, "amount": 1e-999999999`), want: returns, says: in("amount")},
		{name: "S amount is text", make: fields(`, "amount": "1.234,56"`), want: returns, says: in("amount")},
		{name: "S wrong types", make: sidecar(`{"documentType": 1, "documentId": ["x"], "documentDate": {}, "senderIds": "DE1", "amount": true}`), want: returns, says: in("documentType", "documentId", "documentDate", "senderIds", "amount")},
		{name: "S null", make: fields(`, "amount": null`), want: returns, says: in("is null")},
		{name: "S array", make: sidecar(`[]`), want: returns, says: in("not an object")},
		{name: "S text", make: sidecar(`"x"`), want: returns, says: in("not an object")},
		{name: "S 30 February", make: sidecar(`{"documentType": "Invoice", "documentId": "N-1", "documentDate": "2026-02-30"}`), want: returns, says: in("documentDate")},
		{name: "S month 13", make: sidecar(`{"documentType": "Invoice", "documentId": "N-1", "documentDate": "2026-13-01"}`), want: returns, says: in("documentDate")},
		{name: "S year 0", make: sidecar(`{"documentType": "Invoice", "documentId": "N-1", "documentDate": "0000-01-01"}`), want: returns, says: in("documentDate")},
		{name: "S German date", make: sidecar(`{"documentType": "Invoice", "documentId": "N-1", "documentDate": "31.10.2026"}`), want: returns, says: in("documentDate", "2026-10-31")},
		{name: "S line break in number", make: sidecar(`{"documentType": "Invoice", "documentId": "N-1\r\nX-Evil: 1", "documentDate": "2026-10-31"}`), want: returns, says: in("documentId", "control character")},
		{name: "S bad UUID", make: fields(`, "clientUUID": "../../etc/passwd"`), want: returns, says: in("clientUUID", "is not a UUID")},
		{name: "S zero UUID", make: fields(`, "clientUUID": "00000000-0000-0000-0000-000000000000"`), want: returns, says: in("clientUUID")},
		{name: "S files out of it", make: fields(`, "files": ["../../outside/secret.txt", "/etc/passwd", "C:\\x"]`), want: returns, says: in("is not the name of a file in this folder")},
		{name: "S files not there", make: fields(`, "files": ["fehlt.pdf"]`), want: returns, says: in("fehlt.pdf is not in the folder")},
		{name: "S HTML", make: fields(`, "senderName": "<script>alert(1)</script>", "recipientName": "<img src=x onerror=alert(1)>"`), want: archives},
		{name: "S HTML refused", make: fields(`, "amount": "<script>alert(1)</script>"`), want: returns, says: in("amount")},
		{name: "S formula", make: sidecar(`{"documentType": "Invoice", "documentId": "=cmd|' /C calc'!A0 N-1", "documentDate": "2026-10-31", "senderName": "@SUM(1+1)*cmd|' /C calc'!A0"}`), want: archives},
		{name: "S escape", make: fields(`, "senderName": "\u001b[2J\u001b]0;pwned\u0007"`), want: returns, says: in("control character")},
		{name: "S turned", make: fields(`, "senderName": "Huber\u202e88 \u2066x\u2069", "recipientName": "a\u2028b\u200b"`), want: archives},
		{name: "S refused turned", make: fields(`, "am\u202eount": 1, "x\u001b[2J": 2`), want: returns, says: in("is not a field that is known here")},
		{name: "S Word quotes", make: sidecar(`{“documentType”: “Invoice”}`), want: returns, says: in("curly quotes", `_template\metadata.json`)},
		{name: "S cut", make: sidecar(whole[:40]), want: returns, says: in("metadata.json")},
		{name: "S a ZIP", make: sidecar("PK\x03\x04x"), want: returns, says: in("word processor")},
	}
}
