// Package number spells numbers, and adds them.
package number

import (
	"strconv"
	"strings"
)

const (
	// plainDigits is how many digits a number has that is written without an exponent, and plainZeros how many zeros behind its point.
	plainDigits, plainZeros = 21, 6
	// maxExponent is how many digits an exponent has that is read.
	maxExponent = 9
)

// Plain returns the one spelling that a number of JSON has in keys, which is that of ECMAScript for numbers of a double's precision: 1 for
// 1.0, 1e0 and 10e-1, and every digit of a long one. A client that spells a number in another way chooses no other key. It returns false for what is no number, or has an exponent of
// more than nine characters.
func Plain(spelled string) (string, bool) {
	text, negative := strings.CutPrefix(spelled, "-")
	mantissa, exponent := text, 0
	if at := strings.IndexAny(text, "eE"); at >= 0 {
		n, err := strconv.Atoi(text[at+1:])
		if err != nil || len(text)-at-1 > maxExponent {
			return "", false
		}
		mantissa, exponent = text[:at], n
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := whole + fraction
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return "", false
	}
	exponent -= len(fraction)
	if digits = strings.TrimLeft(digits, "0"); digits == "" {
		return "0", true
	}
	significant := strings.TrimRight(digits, "0")
	exponent += len(digits) - len(significant)
	number := placed(significant, exponent)
	if negative {
		number = "-" + number
	}
	return number, true
}

// placed writes digits that neither begin nor end with a zero, times a power of ten.
func placed(digits string, exponent int) string {
	point := len(digits) + exponent
	switch {
	case exponent >= 0 && point <= plainDigits:
		return digits + strings.Repeat("0", exponent)
	case 0 < point && point <= plainDigits:
		return digits[:point] + "." + digits[point:]
	case -plainZeros < point && point <= 0:
		return "0." + strings.Repeat("0", -point) + digits
	}
	number := digits[:1]
	if len(digits) > 1 {
		number += "." + digits[1:]
	}
	sign := "+"
	if point < 1 {
		sign = ""
	}
	return number + "e" + sign + strconv.Itoa(point-1)
}
