package networkapi

import (
	"fmt"
	"net/mail"
	"regexp"
	"strings"
	"unicode"
)

// Lengths of identifiers, in digits.
const (
	dunsDigits = 9
	glnDigits  = 13
)

// Forms of identifiers. Assumptions: the specification shows no pattern for a VAT number, and neither the length nor the check
// digits of an IBAN; these are those of the European Union and of ISO 13616.
var (
	vatPattern  = regexp.MustCompile(`^[A-Z]{2}[0-9A-Za-z+*]{2,12}$`)
	ibanPattern = regexp.MustCompile(`^[A-Z]{2}[0-9]{2}[0-9A-Z]{11,30}$`)
)

// schemeWords lists the schemes for a person.
const schemeWords = "ISO6523-ACTORID-UPIS, VAT, EMAIL-RFC2822, IBAN, DUNS, GLN, a country with :ORGNR (like FR:ORGNR), NL:KVK, NO:VAT"

// checkIdentifier says what is wrong with an identifier under its scheme; empty: nothing. wrongScheme says that the scheme is not one
// that the network knows.
func checkIdentifier(scheme, id string) (text string, wrongScheme bool) {
	if id != strings.TrimSpace(id) || strings.ContainsFunc(id, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "it begins or ends with a space, or holds a character that cannot be seen.", false
	}
	switch scheme {
	case "ISO6523-ACTORID-UPIS", "NL:KVK", "NO:VAT":
		return "", false // their forms are not specified
	case "VAT":
		if !vatPattern.MatchString(id) {
			return "a VAT number begins with the two letters of its country and has no spaces, like DE123456789.", false
		}
	case "EMAIL-RFC2822":
		if a, err := mail.ParseAddress(id); err != nil || a.Address != id {
			return "this is not an e-mail address.", false
		}
	case "IBAN":
		return checkIBAN(id), false
	case "DUNS":
		return checkDigits(id, "a D-U-N-S number", dunsDigits), false
	case "GLN":
		return checkDigits(id, "a GLN", glnDigits), false
	case "FR:ORGNR":
		return checkDigits(id, "a SIREN", SIRENDigits), false
	default:
		if country, is := strings.CutSuffix(scheme, ":ORGNR"); !is || !isCountry(country) {
			return fmt.Sprintf("%q is not a scheme of the network; write one of %s.", shortenText(scheme), schemeWords), true
		}
		if id == "" || strings.Trim(id, "0123456789") != "" {
			return "a number of a national register has digits only.", false
		}
	}
	return "", false
}

// checkDigits says what is wrong with a number of exactly n digits; empty: nothing.
func checkDigits(id, name string, n int) string {
	switch {
	case strings.Trim(id, "0123456789") != "":
		return fmt.Sprintf("%s has %d digits and nothing else.", name, n)
	case len(id) != n:
		return fmt.Sprintf("%s has %d digits, this has %d.", name, n, len(id))
	}
	return ""
}

// checkIBAN says what is wrong with an IBAN; empty: nothing.
func checkIBAN(id string) string {
	switch {
	case strings.ContainsAny(id, " \t"):
		return "an IBAN is written without spaces."
	case !ibanPattern.MatchString(id):
		return "an IBAN has two capital letters, two digits, and 11 to 30 capital letters and digits."
	}
	remainder := 0
	for _, r := range id[4:] + id[:4] {
		if r >= 'A' { // A counts 10, B 11, and so on: two digits
			remainder = (remainder*100 + int(r-'A') + 10) % 97
		} else {
			remainder = (remainder*10 + int(r-'0')) % 97
		}
	}
	if remainder != 1 {
		return "the check digits of this IBAN do not match; one of its characters is wrong."
	}
	return ""
}

// shortenText returns a text for a message: at most 60 characters of it, all of them such that can be seen.
func shortenText(s string) string {
	r := []rune(s)
	for i := range r {
		if !unicode.IsPrint(r[i]) {
			r[i] = '·'
		}
	}
	if len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return string(r)
}
