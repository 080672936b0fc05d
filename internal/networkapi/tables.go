package networkapi

import (
	"slices"
	"strings"

	"vaultd/internal/archive"
	"vaultd/internal/strictjson"
)

// form is what a value of data must be.
type form uint8

const (
	anyForm form = iota
	textForm
	boolForm
	objectForm
	listForm // of objects
)

// formTexts are what is wrong with a value that has another form.
var formTexts = map[form]string{textForm: "must be a text in quotes.", boolForm: "must be true or false, without quotes.", objectForm: "must be an object in { }.", listForm: "must be a list in [ ]."}

// dataForms are the tables of the specification, a row for each field of data:
// its path, in which [] is an element of a list and party any of the parties,
// and its form. Dates, numbers, currencies and countries have theirs wherever
// they stand. What the tables only show in a sample is free.
var dataForms = readForms(map[form]string{
	textForm: `note documentCurrencyCode
		externalDocumentIdentifier.id externalDocumentIdentifier.schemeId
		orderReference.id orderReference.schemeId orderReference.customerReference orderReference.salesOrderId
		contractDocumentReferences[].id contractDocumentReferences[].schemeId
		additionalDocumentReference.id additionalDocumentReference.schemeId additionalDocumentReference.typeCode
		allowanceCharges[].allowanceChargeReasonCode allowanceCharges[].allowanceChargeReason
		party.partyName party.endpoint.id party.endpoint.schemeId party.partyIdentifications[].id party.partyIdentifications[].schemeId
		party.postalAddress.cityName party.postalAddress.postalZone party.postalAddress.addressLine party.postalAddress.addressLine2
		party.postalAddress.addressLine3 party.postalAddress.locality party.postalAddress.countrySubentity
		party.partyTaxScheme.company.id party.partyTaxScheme.company.schemeId
		party.contact.name party.contact.telephone party.contact.telefax party.contact.electronicMail
		paymentMeans.paymentMeansCode paymentMeans.paymentReferenceMessage paymentMeans.paymentIdentifier.id paymentMeans.paymentIdentifier.schemeId
		paymentMeans.financialAccounts[].financialInstitutionName paymentMeans.financialAccounts[].financialInstitutionId
		paymentMeans.financialAccounts[].financialInstitutionIdSchemeId paymentMeans.financialAccounts[].financialInstitutionBranchId
		paymentMeans.financialAccounts[].financialInstitutionBranchSchemeId
		paymentMeans.financialAccounts[].ids[].id paymentMeans.financialAccounts[].ids[].schemeId
		paymentMeans.financialAccounts[].accounting.virtualBankBarcode.id paymentMeans.financialAccounts[].accounting.virtualBankBarcode.schemeId
		paymentTerms.note`,
	boolForm: `isIssuedAgainstOrder allowanceCharges[].changeIndicator`,
	objectForm: `externalDocumentIdentifier orderReference contractDocumentReferences[] additionalDocumentReference allowanceCharges[]
		party party.endpoint party.partyIdentifications[] party.postalAddress party.partyTaxScheme party.partyTaxScheme.company party.contact
		delivery paymentMeans paymentMeans.paymentIdentifier paymentMeans.financialAccounts[] paymentMeans.financialAccounts[].ids[]
		paymentMeans.financialAccounts[].accounting paymentMeans.financialAccounts[].accounting.virtualBankBarcode
		paymentTerms paymentTerms.settlementPeriod taxTotal taxTotal.taxSubtotals[] taxTotal.taxSubtotals[].taxCategory`,
	listForm: `contractDocumentReferences allowanceCharges party.partyIdentifications paymentMeans.financialAccounts paymentMeans.financialAccounts[].ids taxTotal.taxSubtotals`,
})

func readForms(rows map[form]string) map[string]form {
	all := map[string]form{}
	for f, paths := range rows {
		for path := range strings.FieldsSeq(paths) {
			all[path] = f
		}
	}
	return all
}

// schemesOf are the words that a schemeId may have, by its path, where the tables list them.
var schemesOf = map[string][]string{
	"paymentMeans.paymentIdentifier.schemeId":                                 {"SPY", "ISO"},
	"paymentMeans.financialAccounts[].accounting.virtualBankBarcode.schemeId": {"FI"},
}

// oldNames are the names that version 1 has for fields, and what to write in
// version 2. The network may leave out in silence what has an old name.
var oldNames = map[string]string{
	"partyIdentification":       `write "partyIdentifications", a list in [ ].`,
	"allowanceCharge":           `write "allowanceCharges", a list in [ ] whose elements have "changeIndicator" and "amount".`,
	"contractDocumentReference": `write "contractDocumentReferences", a list in [ ].`,
	"invoiceLine":               `write "invoiceLines", a list in [ ].`,
	"financialAccount":          `write "financialAccounts", a list in [ ].`,
	"taxSubtotal":               `write "taxSubtotals", a list in [ ].`,
	"deliveryChannelPreference": `write "processingPreference", or "printingPreference", beside "data".`,
	"serviceProviderId":         `write "operator".`,
	"processingPreference":      `write it beside "data", not into it.`,
	"printingPreference":        `write it beside "data", not into it.`,
	"internalId":                `delete it: version 2 has no such field.`,
	"amountUninvoiced":          `delete it: version 2 has no such field.`,
	"billingReference":          `delete it: version 2 has no such field in an invoice.`,
	"version":                   `delete it: version 2 has no such field.`,
}

// adviseOnOldName says what to write in place of a name of version 1; empty:
// the name is none. path is that of the field in data.
func adviseOnOldName(kind archive.NetworkKind, path, name string) string {
	switch {
	case name == "billingReference" && kind != archive.NetworkInvoice, name == "version" && path != name:
		return ""
	case name == "taxTotal" && strings.HasPrefix(path, "invoiceLines[]"):
		return `write "taxTotals", a list in [ ].`
	}
	return oldNames[name]
}

// checkForm checks one value against its row of the tables.
func (c *checker) checkForm(n *node, field, path string) {
	f := dataForms[path]
	isRight := true
	switch f {
	case textForm:
		isRight = n.Is(strictjson.Text)
	case boolForm:
		isRight = isBool(n)
	case objectForm:
		isRight = n.Is(strictjson.Object)
	case listForm:
		isRight = n.Is(strictjson.List)
	}
	if !isRight {
		c.addFault(n.At, field, formTexts[f])
	}
	if words := schemesOf[path]; words != nil && isRight && !slices.Contains(words, n.Text) {
		c.addFault(n.At, field, "is not known; write "+strings.Join(words, " or ")+".")
	}
}

// isBool reports whether a value is true or false.
func isBool(n *node) bool { return n.Is(strictjson.Word) && !n.IsNull() }

// isCountry reports whether a text is a code of ISO 3166-1 alpha-2.
func isCountry(code string) bool {
	return len(code) == 2 && code == strings.ToUpper(code) && slices.Contains(strings.Fields(countries), code)
}

// countries are the codes of ISO 3166-1 alpha-2.
const countries = `AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ CA CC CD CF CG CH CI CK CL CM CN
	CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT
	HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ
	MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ
	SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW`
