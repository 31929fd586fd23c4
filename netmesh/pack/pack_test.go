package pack

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
)

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestMarshal(t *testing.T) {
	type id string
	type level int
	var none *int
	seven := 7
	cyclic := map[string]any{}
	cyclic["again"] = cyclic
	tests := []struct {
		name string
		v    any
		want string
		err  error
	}{
		{"map keys sorted, t first", map[string]any{"z": 1, "a": 2, "t": "x"}, "83 b174 b178 b161 02 b17a 01", nil},
		{"ordered map", Map{{"z", 1}, {"a", 2}}, "82 b17a 01 b161 02", nil},
		{"named string", id("ab"), "b2 6162", nil},
		{"named integer", level(-5), "fb", nil},
		{"strings", []string{"a", "b"}, "92 b161 b162", nil},
		{"maps", []map[string]int{{"a": 1}}, "91 81 b161 01", nil},
		{"pointer", &seven, "07", nil},
		{"nil pointer", none, "c0", nil},
		{"nil binary", []byte(nil), "c0", nil},
		{"float32", float32(1.5), "cb 3ff8000000000000", nil},
		{"float without fraction", 2500.0, "cd 09c4", nil},
		{"2^53 as a float", float64(1 << 53), "d3 0020000000000000", nil},
		{"largest", uint64(math.MaxUint64), "cf ffffffffffffffff", nil},
		{"smallest", math.MinInt32, "d2 80000000", nil},
		{"smallest as a float", float64(math.MinInt32), "d2 80000000", nil},
		{"broken text", "a\xff", "b4 61 efbfbd", nil},
		{"below the smallest", math.MinInt32 - 1, "", ErrValue},
		{"below the smallest, a float", float64(math.MinInt32 - 1), "", ErrValue},
		{"2^64 as a float", math.Pow(2, 64), "", ErrValue},
		{"NaN", math.NaN(), "", ErrValue},
		{"infinity in a map", map[string]any{"x": math.Inf(-1)}, "", ErrValue},
		{"function", func() {}, "", ErrValue},
		{"struct", struct{ A int }{1}, "", ErrValue},
		{"integer keys", map[int]int{1: 2}, "", ErrValue},
		{"holds itself", cyclic, "", ErrValue},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Marshal(tt.v)
			if !errors.Is(err, tt.err) {
				t.Fatalf("got error %v, want %v", err, tt.err)
			}
			if want := unhex(t, tt.want); tt.err == nil && !bytes.Equal(got, want) {
				t.Errorf("got %x, want %x", got, want)
			}
		})
	}
}

func TestAppendLeavesPrefix(t *testing.T) {
	got, err := Append([]byte("ab"), 1)
	if err != nil || string(got) != "ab\x01" {
		t.Errorf("got %q, %v", got, err)
	}
	got, err = Append([]byte("ab"), []any{1, math.NaN()})
	if err == nil || string(got) != "ab" {
		t.Errorf("after an error got %q, %v", got, err)
	}
}

func TestUnmarshal(t *testing.T) {
	tests := []struct {
		name string
		hex  string
		lim  Limits
		want any
		err  error
	}{
		{"uint64 above int64", "cf ffffffffffffffff", Limits{}, uint64(math.MaxUint64), nil},
		{"uint64 within int64", "cf 0000000000000005", Limits{}, int64(5), nil},
		{"same key twice", "82 b161 01 b161 02", Limits{}, map[string]any{"a": int64(2)}, nil},
		{"keys that are no text", "84 c0 01 c3 02 ff 03 cb3fe0000000000000 04", Limits{},
			map[string]any{"null": int64(1), "true": int64(2), "-1": int64(3), "0.5": int64(4)}, nil},
		{"broken text", "b2 61ff", Limits{}, "a\uFFFD", nil},
		{"empty binary is not nil", "a0", Limits{}, []byte{}, nil},
		{"depth within", "91 91 01", Limits{Depth: 2}, []any{[]any{int64(1)}}, nil},
		{"elements within", "92 91 01 02", Limits{Elements: 3}, []any{[]any{int64(1)}, int64(2)}, nil},

		{"nothing", "", Limits{}, nil, ErrTruncated},
		{"more after the value", "0101", Limits{}, nil, ErrTrailing},
		{"short string", "b5 6161", Limits{}, nil, ErrTruncated},
		{"string of 4 GiB", "d9 ffffffff 61", Limits{}, nil, ErrTruncated},
		{"binary of 2 GiB", "db 7fffffff 61", Limits{}, nil, ErrTruncated},
		{"array of 2^31 items", "dd 7fffffff 01", Limits{}, nil, ErrTruncated},
		{"map of 2^31 entries", "df 7fffffff 01", Limits{}, nil, ErrTruncated},
		{"map of more entries than bytes allow", "82 b0 01", Limits{}, nil, ErrTruncated},
		{"half a length", "d8 00", Limits{}, nil, ErrTruncated},
		{"half a long length", "d9 000000", Limits{}, nil, ErrTruncated},
		{"half a number", "cd 01", Limits{}, nil, ErrTruncated},
		{"map without its value", "81 a0", Limits{}, nil, ErrTruncated},
		{"code without a meaning", "c4", Limits{}, nil, ErrCorrupt},
		{"key that is an array", "81 90 01", Limits{}, nil, ErrCorrupt},
		{"NaN", "cb 7ff8000000000000", Limits{}, nil, ErrCorrupt},
		{"float32 infinity", "ca 7f800000", Limits{}, nil, ErrCorrupt},
		{"too deep", "91 91 91 01", Limits{Depth: 2}, nil, ErrLimit},
		{"deep maps", strings.Repeat("81 b161 ", 40) + "01", Limits{}, nil, ErrLimit},
		{"too many elements", "92 92 01 02 03", Limits{Elements: 3}, nil, ErrLimit},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Unmarshal(unhex(t, tt.hex), tt.lim)
			if !errors.Is(err, tt.err) {
				t.Fatalf("got error %v, want %v", err, tt.err)
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %#v, want %#v", got, tt.want)
			}
		})
	}
}

func TestUnmarshalCopies(t *testing.T) {
	in := unhex(t, "92 a2 0102 b2 6162")
	v, err := Unmarshal(in, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	clear(in)
	if want := []any{[]byte{1, 2}, "ab"}; !reflect.DeepEqual(v, want) {
		t.Errorf("got %v after the input was cleared, want %v", v, want)
	}
}

// A short input must not make the decoder allocate for what it only announces.
func TestUnmarshalAllocatesByContent(t *testing.T) {
	in := bytes.Repeat([]byte{codeArr32, 0, 0, 0x80, 0}, 31)
	in = append(in, make([]byte, 0x8000)...)
	per := testing.AllocsPerRun(5, func() {
		if _, err := Unmarshal(in, Limits{}); !errors.Is(err, ErrLimit) {
			t.Fatalf("got %v, want ErrLimit", err)
		}
	})
	if per > 100 {
		t.Errorf("%v allocations for nested arrays over the limit", per)
	}
}
