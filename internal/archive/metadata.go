package archive

import (
	"strings"
	"unicode/utf8"
)

// Every answer about many documents parses the metadata of each. What [Document.Metadata] wrote is nearly always plain: its fields in their
// order, no blank between them, no escape in a text. Such bytes are read here in one go; all others are left to encoding/json, which
// would give the same.

// parsePlainMetadata reads metadata that is plain; ok is false for all other bytes, good or bad.
func parsePlainMetadata(b []byte) (d Document, ok bool) {
	if !utf8.Valid(b) { // encoding/json would change the text
		return d, false
	}
	p := plainParser{rest: string(b)}
	if !p.skip('{') {
		return d, false
	}
	p.text(`"documentType":`, &d.Type)
	p.text(`"documentId":`, &d.Number)
	p.text(`"documentDate":`, &d.Date)
	p.text(`"senderName":`, &d.SenderName)
	p.texts(`"senderIds":`, &d.SenderIDs)
	p.text(`"recipientName":`, &d.RecipientName)
	p.texts(`"recipientIds":`, &d.RecipientIDs)
	p.text(`"currencyCode":`, &d.Currency)
	p.text(`"buyerReferenceId":`, &d.BuyerReferenceID)
	p.text(`"buyerReferenceType":`, &d.BuyerReferenceType)
	p.number(`"amount":`, &d.Amount)
	p.text(`"tradingPartner":`, &d.TradingPartner)
	p.text(`"flowDirection":`, &d.FlowDirection)
	if p.failed || p.rest != "}" {
		return Document{}, false
	}
	return d, true
}

// plainParser reads an object from its beginning on. Once it failed it reads nothing more.
type plainParser struct {
	rest     string
	hasField bool // a field was read: a comma stands before the next one
	failed   bool
}

func (p *plainParser) skip(c byte) bool {
	if p.rest == "" || p.rest[0] != c {
		p.failed = true
		return false
	}
	p.rest = p.rest[1:]
	return true
}

// begin reports whether the field with this name comes next, and goes to its value.
func (p *plainParser) begin(name string) bool {
	rest := p.rest
	if p.hasField {
		var more bool
		if rest, more = strings.CutPrefix(rest, ","); !more {
			return false
		}
	}
	rest, is := strings.CutPrefix(rest, name)
	if !is || p.failed {
		return false
	}
	p.rest, p.hasField = rest, true
	return true
}

// quoted reads a text without escapes.
func (p *plainParser) quoted() (text string) {
	if !p.skip('"') {
		return ""
	}
	for i := range len(p.rest) {
		switch c := p.rest[i]; {
		case c == '"':
			text, p.rest = p.rest[:i], p.rest[i+1:]
			return text
		case c == '\\' || c < ' ':
			p.failed = true
			return ""
		}
	}
	p.failed = true
	return ""
}

func (p *plainParser) text(name string, to *string) {
	if p.begin(name) {
		*to = p.quoted()
	}
}

// texts reads a list that is not empty.
func (p *plainParser) texts(name string, to *[]string) {
	if !p.begin(name) || !p.skip('[') {
		return
	}
	for {
		*to = append(*to, p.quoted())
		if p.failed || !strings.HasPrefix(p.rest, ",") {
			break
		}
		p.rest = p.rest[1:]
	}
	if !p.failed {
		p.skip(']')
	}
}

// number reads a number without an exponent.
func (p *plainParser) number(name string, to *Decimal) {
	if !p.begin(name) {
		return
	}
	end := strings.IndexFunc(p.rest, func(r rune) bool { return r != '-' && r != '.' && (r < '0' || r > '9') })
	if end < 0 {
		p.failed = true
		return
	}
	text := p.rest[:end]
	whole, part, hasPart := strings.Cut(strings.TrimPrefix(text, "-"), ".")
	if !isDigits(whole) || len(whole) > 1 && whole[0] == '0' || hasPart && !isDigits(part) {
		p.failed = true
		return
	}
	*to, p.rest = Decimal(text), p.rest[end:]
}

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
