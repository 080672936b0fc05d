package emulator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// sentBody is what the network needs of a document that is sent.
type sentBody struct {
	refs     []string // of its files
	receiver string   // the id of its endpoint
	scheme   string   // of that id, where processingPreference names it
	outcomes []string // chosen by its note
	data     json.RawMessage
}

// documentChecker checks a document and collects what is wrong with it.
type documentChecker struct{ problems []networkProblem }

func (k *documentChecker) refuse(code, field, message string) {
	k.problems = append(k.problems, networkProblem{code, field, message})
}

const (
	wrongField   = "Error.004.0002"
	wrongParty   = "Error.004.0013"
	wrongIBAN    = "Error.004.0014"
	noJSONObject = "Error.004.0004"
)

// parseSentDocument reads the body of a document: fileRefs, data, and how it is to be delivered.
func parseSentDocument(body []byte) (d sentBody, problems []networkProblem) {
	var have map[string]json.RawMessage
	if !utf8.Valid(body) || !bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) || json.Unmarshal(body, &have) != nil || hasTwins(body) {
		return d, []networkProblem{{noJSONObject, "", "the body is not one JSON object"}}
	}
	k := &documentChecker{}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if !slices.Contains([]string{"fileRefs", "data", "processingPreference", "printingPreference"}, name) {
			k.refuse(wrongField, name, "the field is unknown")
		}
	}
	var whole map[string]any
	_ = json.Unmarshal(body, &whole) // was read above
	d.data = have["data"]
	for i, ref := range k.objects(whole, "", "fileRefs") {
		field := fmt.Sprintf("fileRefs[%d]", i)
		d.refs = append(d.refs, k.text(ref, field, "refId", true))
		if t := k.text(ref, field, "fileType", false); t != "" && !slices.Contains(fileTypes, t) {
			k.refuse("Error.003.0020", field+".fileType", "the type of the file is none of imageFile, attachmentFile and dataFile")
		}
	}
	data := k.object(whole, "", "data", true)
	k.checkData(data)
	d.outcomes = k.outcomesOf(k.text(data, "data", "note", false))
	preference := k.object(whole, "", "processingPreference", false)
	sentTo := k.object(preference, "processingPreference", "sentTo", false)
	d.receiver = k.identifier(sentTo, "processingPreference.sentTo")
	d.scheme, _ = sentTo["schemeId"].(string)
	if d.receiver == "" {
		customer, _ := data["accountingCustomerParty"].(map[string]any)
		if endpoint, _ := customer["endpoint"].(map[string]any); endpoint != nil {
			d.receiver, _ = endpoint["id"].(string)
		}
	}
	if d.receiver == "" && len(k.problems) == 0 {
		k.refuse(wrongField, "processingPreference.sentTo", "the document names no receiver")
	}
	return d, k.problems
}

// outcomesOf reads the words of a note that choose what becomes of the document.
func (k *documentChecker) outcomesOf(note string) (outcomes []string) {
	for _, word := range strings.Fields(note) {
		outcome, chosen := strings.CutPrefix(word, "emulate:")
		switch {
		case !chosen:
		case slices.Contains(networkOutcomes, outcome):
			outcomes = append(outcomes, outcome)
		default:
			k.refuse(wrongField, "data.note", "the word after emulate: is no outcome")
		}
	}
	return outcomes
}

var (
	currencyPattern = regexp.MustCompile(`^[A-Z]{3}$`)
	datePattern     = regexp.MustCompile(`^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])(Z|[+-][0-9]{2}:[0-9]{2})?$`)
	ibanPattern     = regexp.MustCompile(`^[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}$`)
	orgNumber       = regexp.MustCompile(`^[A-Z]{2}:ORGNR$`)
)

// schemePatterns are the schemes of party identifiers, and the ids that each allows.
var schemePatterns = map[string]*regexp.Regexp{
	"ISO6523-ACTORID-UPIS": regexp.MustCompile(`\S`),
	"VAT":                  regexp.MustCompile(`\S`),
	"EMAIL-RFC2822":        regexp.MustCompile(`^[^@\s]+@[^@\s]+$`),
	"DUNS":                 regexp.MustCompile(`^[0-9]{9}$`),
	"GLN":                  regexp.MustCompile(`^[0-9]{13}$`),
	"FR:ORGNR":             regexp.MustCompile(`^[0-9]{9}$`),
	"NL:KVK":               regexp.MustCompile(`\S`),
	"NO:VAT":               regexp.MustCompile(`\S`),
}

var digitsOnly = regexp.MustCompile(`^[0-9]+$`)

// checkData checks what the specification demands of the business content. Fields that it does not tell are free.
func (k *documentChecker) checkData(data map[string]any) {
	if code := k.text(data, "data", "documentCurrencyCode", data != nil); code != "" && !currencyPattern.MatchString(code) {
		k.refuse(wrongField, "data.documentCurrencyCode", "the code must have three capital letters")
	}
	k.date(data, "data", "issueDate")
	if value, told := data["isIssuedAgainstOrder"]; told {
		if _, ok := value.(bool); !ok {
			k.refuse(wrongField, "data.isIssuedAgainstOrder", "the field must be a boolean")
		}
	}
	if number := k.object(data, "data", "externalDocumentIdentifier", false); number != nil {
		k.text(number, "data.externalDocumentIdentifier", "id", true)
	}
	for _, name := range []string{"accountingSupplierParty", "accountingCustomerParty", "buyerCustomerParty", "sellerSupplierParty", "deliveryParty"} {
		k.checkParty(k.object(data, "data", name, false), "data."+name)
	}
	for i, charge := range k.objects(data, "data", "allowanceCharges") {
		field := fmt.Sprintf("data.allowanceCharges[%d]", i)
		if _, ok := charge["changeIndicator"].(bool); !ok {
			k.refuse(wrongField, field+".changeIndicator", "the field must be a boolean")
		}
		if _, ok := charge["amount"].(float64); !ok {
			k.refuse(wrongField, field+".amount", "the field must be a number")
		}
	}
	k.checkPayment(data)
	k.date(k.object(data, "data", "delivery", false), "data.delivery", "actualDeliveryDate")
	period := k.object(k.object(data, "data", "paymentTerms", false), "data.paymentTerms", "settlementPeriod", false)
	k.date(period, "data.paymentTerms.settlementPeriod", "startDate")
	k.date(period, "data.paymentTerms.settlementPeriod", "endDate")
}

// checkParty checks a party; nil: the document has none.
func (k *documentChecker) checkParty(party map[string]any, field string) {
	if party == nil {
		return
	}
	k.text(party, field, "partyName", true)
	k.identifier(k.object(party, field, "endpoint", false), field+".endpoint")
	k.object(party, field, "partyTaxScheme", false)
	for i, id := range k.objects(party, field, "partyIdentifications") {
		k.identifier(id, fmt.Sprintf("%s.partyIdentifications[%d]", field, i))
	}
}

// checkPayment checks how the document is to be paid.
func (k *documentChecker) checkPayment(data map[string]any) {
	const field = "data.paymentMeans"
	means := k.object(data, "data", "paymentMeans", false)
	if means == nil {
		return
	}
	k.text(means, field, "paymentMeansCode", true)
	k.date(means, field, "paymentDueDate")
	for i, account := range k.objects(means, field, "financialAccounts") {
		at := fmt.Sprintf("%s.financialAccounts[%d]", field, i)
		for j, id := range k.objects(account, at, "ids") {
			idField := fmt.Sprintf("%s.ids[%d]", at, j)
			if text := k.text(id, idField, "id", true); id["schemeId"] == "IBAN" && !ibanPattern.MatchString(text) {
				k.refuse(wrongIBAN, idField, "the format of the IBAN is invalid")
			}
		}
	}
}

// identifier checks the identifier of a party and returns its id; nil: there is none.
func (k *documentChecker) identifier(id map[string]any, field string) string {
	if id == nil {
		return ""
	}
	text, scheme := k.text(id, field, "id", true), k.text(id, field, "schemeId", false)
	pattern, known := schemePatterns[scheme]
	if !known && orgNumber.MatchString(scheme) {
		pattern, known = digitsOnly, true
	}
	switch {
	case text == "" || scheme == "":
	case scheme == "IBAN" && !ibanPattern.MatchString(text):
		k.refuse(wrongIBAN, field, "the format of the IBAN is invalid")
	case scheme == "IBAN":
	case !known:
		k.refuse(wrongParty, field+".schemeId", "the scheme is unknown")
	case !pattern.MatchString(text):
		k.refuse(wrongParty, field+".id", "the id does not fit its scheme")
	}
	return text
}

// object returns a field that must be an object; nil: there is none.
func (k *documentChecker) object(of map[string]any, field, name string, isRequired bool) map[string]any {
	value, told := of[name]
	o, ok := value.(map[string]any)
	if told && !ok || !told && isRequired {
		k.refuse(wrongField, joinField(field, name), "the field must be an object")
	}
	return o
}

// objects returns a field that must be an array of objects; nil: there is none.
func (k *documentChecker) objects(of map[string]any, field, name string) (all []map[string]any) {
	value, told := of[name]
	items, ok := value.([]any)
	if told && !ok {
		k.refuse(wrongField, joinField(field, name), "the field must be an array")
	}
	for i, item := range items {
		o, ok := item.(map[string]any)
		if !ok {
			k.refuse(wrongField, fmt.Sprintf("%s[%d]", joinField(field, name), i), "the element must be an object")
			continue
		}
		all = append(all, o)
	}
	return all
}

// text returns a field that must be a text; empty: there is none.
func (k *documentChecker) text(of map[string]any, field, name string, isRequired bool) string {
	value, told := of[name]
	text, ok := value.(string)
	if told && !ok || isRequired && text == "" {
		k.refuse(wrongField, joinField(field, name), "the field must be a text")
	}
	return text
}

// date checks a field that must be a date, where there is one.
func (k *documentChecker) date(of map[string]any, field, name string) {
	if text := k.text(of, field, name, false); text != "" && !datePattern.MatchString(text) {
		k.refuse(wrongField, joinField(field, name), "the field must be a date like 2026-01-31, with or without a zone")
	}
}

func joinField(field, name string) string {
	return strings.TrimPrefix(field+"."+name, ".")
}
