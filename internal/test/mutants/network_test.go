package mutants

const (
	documentTests  = "-run CheckDocument|CheckIBAN " + networkTests
	sendTests      = "-run SendDocument " + networkTests
	noticeTests    = "-run Notifications " + networkTests
	recipientTests = "-run RecipientWithoutALineWaits " + readings
	fileTests      = "-run StoreFile|Fetch " + networkTests
)

// network are mistakes in the interface of the business network, and in what commands make of it.
var network = []mutant{
	{
		name: "NetworkOnlyFirstFault", promise: "I24", file: "internal/networkapi/check.go",
		old: "return len(c.faults) >= 2*MaxFaults", new: "return len(c.faults) >= 1", tests: []string{documentTests},
	},
	{
		name: "NetworkLengthOfGLNUnchecked", promise: "I24", file: "internal/networkapi/scheme.go",
		old: `checkDigits(id, "a GLN", glnDigits)`, new: `checkDigits(id, "a GLN", len(id))`, tests: []string{documentTests},
	},
	{
		name: "NetworkIBANWithoutCheckDigits", promise: "I24", file: "internal/networkapi/scheme.go",
		old: "if remainder != 1 {", new: "if remainder < 0 {", tests: []string{documentTests},
	},
	{
		name: "NetworkDateNeedsAZone", promise: "I24", file: "internal/networkapi/check.go",
		old: ":[0-5][0-9])?$`)", new: ":[0-5][0-9])$`)", tests: []string{documentTests},
	},
	{
		name: "NetworkFaultWithoutItsLine", promise: "I24", file: "internal/networkapi/check.go",
		old: "Fault{Line: lineAt(c.src, at), Field: field, Text: text}", new: "Fault{Line: 1 + 0*at, Field: field, Text: text}", tests: []string{documentTests},
	},
	{
		name: "NetworkKnownNumberWithoutARefusal", promise: "I12", file: "internal/networkapi/refusal.go",
		old: "e.Outcome == apicall.Refused && codeOf(e) == codeAlreadyExists", new: "codeOf(e) == codeAlreadyExists", tests: []string{sendTests},
	},
	{
		name: "NetworkKnownNumberIsASuccess", promise: "I12", file: "internal/networkapi/send.go",
		old: "\t\treturn judgeRefusal(err)\n", new: "\t\tif err = judgeRefusal(err); AlreadyExists(err) {\n\t\t\treturn nil\n\t\t}\n\t\treturn err\n", tests: []string{sendTests},
	},
	{
		name: "NetworkCredentialsRejectADocument", promise: "I24", file: "internal/networkapi/refusal.go",
		old: "if e.Status == http.StatusUnauthorized {", new: "if false {", tests: []string{sendTests},
	},
	{
		name: "NetworkRightsRejectADocument", promise: "I24", file: "internal/networkapi/refusal.go",
		old: "case e.Status == http.StatusForbidden, e.IsWebPage():", new: "case e.IsWebPage():", tests: []string{sendTests},
	},
	{
		name: "NetworkListWithoutAnEndIsWhole", promise: "I32", file: "internal/networkapi/notifications.go",
		old: "err == nil && !p.more && p.tellsMore && list.Unreadable == 0", new: "err == nil && !p.more && list.Unreadable == 0", tests: []string{noticeTests},
	},
	{
		name: "NetworkPageWithoutAnEndIsGood", promise: "I32", file: "internal/networkapi/notifications.go",
		old: "if err == nil && !p.tellsMore {", new: "if false {", tests: []string{noticeTests},
	},
	{
		name: "NetworkLinkToAnyHost", promise: "I20", file: "internal/apicall/policy.go",
		old: `return false, &PolicyError{Host: u.Host, Reason: "it is neither the service's host nor in allowed_hosts"}`, new: "return false, p.checkScheme(u)", tests: []string{"-run Redirect " + calls},
	},
	{
		name: "NetworkBase64Kept", promise: "I4", file: "internal/networkapi/file.go",
		old: "if isBase64(head) {", new: "if isBase64(head[:0]) {", tests: []string{fileTests},
	},
	{
		name: "NetworkBoundaryInTheFile", promise: "I4", file: "internal/networkapi/store.go",
		old: "boundary = \"vaultd-\" + f.SHA256.String()[:40]", new: "boundary = \"vaultd-\"", tests: []string{fileTests},
	},
	{
		name: "NetworkFileWithoutADigest", promise: "I4", file: "internal/networkapi/store.go",
		old: "case f.Size <= 0 || f.SHA256.IsZero():", new: "case f.Size <= 0:", tests: []string{fileTests},
	},
	{
		name: "NetworkLineWithoutAnEndIsOver", promise: "I32", file: "internal/networkapi/directory.go",
		old: "\t\tif end == \"\" {\n\t\t\tcontinue\n", new: "\t\tif end == \"\" {\n\t\t\treturn false\n", tests: []string{"-run Directory " + networkTests},
	},
	{
		name: "NetworkCompanyWithoutALineIsSentTo", promise: "I24", file: "internal/networkapi/recipient.go",
		old: "case !isValidOn(today):", new: "case len(lines) == 0:", tests: []string{recipientTests},
	},
	{
		name: "NetworkRecipientIsNotAskedAbout", promise: "I24", file: "internal/ingest/recipient.go",
		old: "case route.Recipients == nil:", new: "case e.Attempt == 0:", tests: []string{recipientTests},
	},
	{
		name: "NetworkAnswerCountsForEver", promise: "I32", file: "internal/networkapi/recipient.go",
		old: "return known && a.covers(r.now())", new: "return known && !a.until.IsZero()", tests: []string{"-run RecipientCheck " + networkTests},
	},
	{
		name: "NetworkFaultOfTheDirectoryHoldsADocument", promise: "I24", file: "internal/ingest/recipient.go",
		old: "case err == nil, isRefused:", new: "case err == nil, isRefused || fault.Denied:", tests: []string{"-run DirectoryThatFails/403 " + readings},
	},
	{
		name: "NetworkEmptyFileIsGood", promise: "I24", file: "cmd/vaultd/validate_network.go",
		old: "if info.Size() == 0 {", new: "if info.Size() < 0 {", tests: []string{"-run ValidateNetwork vaultd/cmd/vaultd"},
	},
	{
		name: "NetworkRefusalIsOnlyAWarning", promise: "I24", file: "cmd/vaultd/doctor_network.go",
		old: "\tif areNeeded {\n\t\tt.Text", new: "\tif areNeeded && t.Text == \"\" {\n\t\tt.Text", tests: []string{"-run Doctor_Network vaultd/cmd/vaultd"},
	},
}
