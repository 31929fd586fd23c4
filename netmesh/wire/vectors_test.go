package wire

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"
)

// vectorFile reads a vector file from POOLED_VECTORS or testdata. A file missing from POOLED_VECTORS is skipped.
func vectorFile(t *testing.T, name string, into any) {
	t.Helper()
	dir, other := os.LookupEnv("POOLED_VECTORS")
	if !other || dir == "" {
		dir, other = "testdata", false
	}
	b, err := os.ReadFile(filepath.Join(dir, name))
	if other && errors.Is(err, fs.ErrNotExist) {
		t.Skipf("POOLED_VECTORS has no %s", name)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

type framesFile struct {
	Header struct {
		Bytes   int      `json:"bytes"`
		Slice   int      `json:"slice_bytes"`
		Payload int      `json:"payload_per_slice"`
		Magic   string   `json:"magic"`
		Kinds   []string `json:"kinds"`
	} `json:"header"`
	Frames []struct {
		Note    string         `json:"note"`
		Msg     map[string]any `json:"msg"`
		FrameID uint32         `json:"frame_id"`
		Words   int            `json:"payload_words"`
		Add     uint32         `json:"payload_add"`
		Slices  []struct {
			K         int    `json:"k"`
			Hex       string `json:"hex"`
			Bytes     int    `json:"bytes"`
			HeaderHex string `json:"header_hex"`
			SHA256    string `json:"sha256"`
		} `json:"slices"`
	} `json:"frames"`
	Flags []struct {
		In   map[string]any `json:"in"`
		Byte int            `json:"byte"`
	} `json:"flags"`
	FlagsErrors []struct {
		RB int `json:"rb"`
	} `json:"flags_errors"`
	FlagsUnpack []struct {
		Byte int            `json:"byte"`
		Out  map[string]any `json:"out"`
	} `json:"flags_unpack"`
	CheckpointErrors []map[string]any `json:"checkpoint_errors"`
	CheckpointUnpack []struct {
		Bytes string         `json:"bytes24_31"`
		Out   map[string]any `json:"out"`
	} `json:"checkpoint_unpack"`
	Striping struct {
		Cases []stripingCase `json:"cases"`
	} `json:"striping"`
	Receiver struct {
		Scenarios []scenario `json:"scenarios"`
	} `json:"receiver"`
	Malformed []struct {
		Note string `json:"note"`
		Hex  string `json:"hex"`
	} `json:"malformed"`
	KeepAlive struct {
		Hex string `json:"hex"`
	} `json:"keepalive"`
}

// payload is the generated payload of the file (payload_rule).
func payload(words int, add uint32) []byte {
	b := make([]byte, 2*words)
	for i := range words {
		w := uint32(i)*2654435761 + add
		binary.LittleEndian.PutUint16(b[2*i:], uint16(w>>16))
	}
	return b
}

// frameOf reads a frame from a message of the file, which leaves out the data.
func frameOf(msg map[string]any, data []byte) (Frame, error) {
	m := maps.Clone(msg)
	if m["t"] == nil {
		m["t"] = "ai-hidden"
	}
	m["data"], m["enc"] = data, "f16"
	return FromMessage(m)
}

func TestVectorsFramesHeader(t *testing.T) {
	var file framesFile
	vectorFile(t, "frames.json", &file)
	h := file.Header
	if h.Bytes == 0 {
		return // a file of other cases need not repeat it
	}
	if h.Bytes != HeaderBytes || h.Slice != SliceBytes || h.Payload != PayloadBytes || h.Magic != fmt.Sprintf("%04x", magic) ||
		!slices.Equal(h.Kinds, kindNames[:]) {
		t.Errorf("got %d, %d, %d, %04x, %v, want %+v", HeaderBytes, SliceBytes, PayloadBytes, magic, kindNames, h)
	}
}

func TestVectorsFramesSlices(t *testing.T) {
	var file framesFile
	vectorFile(t, "frames.json", &file)
	for _, c := range file.Frames {
		t.Run(c.Note, func(t *testing.T) {
			f, err := frameOf(c.Msg, payload(c.Words, c.Add))
			if err != nil {
				t.Fatal(err)
			}
			if f.Slices() != len(c.Slices) {
				t.Fatalf("got %d slices, want %d", f.Slices(), len(c.Slices))
			}
			r := NewReceiver(Limits{})
			r.Opened(0, true)
			r.next = uint64(c.FrameID)
			var got []Frame
			buf := make([]byte, SliceBytes)
			for _, want := range c.Slices {
				b := buf[:f.PutSlice(buf, c.FrameID, want.K)]
				sum := sha256.Sum256(b)
				switch {
				case want.Hex != "" && hex.EncodeToString(b) != want.Hex:
					t.Errorf("slice %d: got %x, want %s", want.K, b, want.Hex)
				case want.Hex == "" && (len(b) != want.Bytes || hex.EncodeToString(b[:HeaderBytes]) != want.HeaderHex ||
					hex.EncodeToString(sum[:]) != want.SHA256):
					t.Errorf("slice %d: got %d bytes, header %x, sha256 %x, want %+v", want.K, len(b), b[:HeaderBytes], sum, want)
				}
				out, _ := r.Slice(time.Unix(0, 0), 0, b)
				got = append(got, out...)
			}
			if len(got) != 1 || !reflect.DeepEqual(got[0], f) {
				t.Errorf("received %+v, want %+v", got, f)
			}
		})
	}
}

func TestVectorsFramesFlags(t *testing.T) {
	var file framesFile
	vectorFile(t, "frames.json", &file)
	for i, c := range file.Flags {
		f, err := frameOf(c.In, nil)
		if err != nil || int(f.flags()) != c.Byte {
			t.Errorf("flags %d %v: got %#x, %v, want %#x", i, c.In, f.flags(), err, c.Byte)
		}
	}
	for _, c := range file.FlagsErrors {
		if f, err := frameOf(map[string]any{"rb": float64(c.RB)}, nil); !errors.Is(err, ErrMessage) {
			t.Errorf("message with rb %d: got %+v, %v, want ErrMessage", c.RB, f, err)
		}
		f := Frame{Rollback: c.RB + 1}
		if c.RB != -1 { // Rollback 0 means none and can't say column -1
			if err := f.Check(); !errors.Is(err, ErrFrame) {
				t.Errorf("frame with rb %d: got %v, want ErrFrame", c.RB, err)
			}
		}
	}
	for _, c := range file.FlagsUnpack {
		var f Frame
		f.setFlags(byte(c.Byte))
		want, err := frameOf(c.Out, nil)
		if err != nil || f.Spec != want.Spec || f.Reset != want.Reset || f.Rollback != want.Rollback {
			t.Errorf("flag byte %#x: got %+v, want %+v, %v", c.Byte, f, want, err)
		}
	}
}

func TestVectorsFramesCheckpoints(t *testing.T) {
	var file framesFile
	vectorFile(t, "frames.json", &file)
	for _, c := range file.CheckpointErrors {
		if f, err := frameOf(c, nil); !errors.Is(err, ErrMessage) {
			t.Errorf("%v: got %+v, %v, want ErrMessage", c, f, err)
		}
	}
	for _, c := range file.CheckpointUnpack {
		control, err := hex.DecodeString(c.Bytes)
		if err != nil || len(control) != 8 {
			t.Fatalf("%s: %v", c.Bytes, err)
		}
		empty := Frame{}
		b := make([]byte, SliceBytes)
		b = b[:empty.PutSlice(b, 1, 0)]
		copy(b[24:], control)
		s, ok := parseSlice(b)
		if !ok || !s.fits() {
			t.Fatalf("%s: not a slice", c.Bytes)
		}
		got := s.frame()
		want, err := frameOf(c.Out, nil)
		if err != nil || got.Save != want.Save || got.Load != want.Load || !slices.Equal(got.Drop, want.Drop) {
			t.Errorf("%s: got %+v, want %+v, %v", c.Bytes, got, want, err)
		}
	}
}

func TestVectorsFramesMalformed(t *testing.T) {
	var file framesFile
	vectorFile(t, "frames.json", &file)
	for _, c := range file.Malformed {
		t.Run(c.Note, func(t *testing.T) {
			in, err := hex.DecodeString(c.Hex)
			if err != nil {
				t.Fatal(err)
			}
			b := newBench(Limits{})
			b.r.Opened(0, true)
			b.took(b.r.Slice(b.now, 0, in))
			if len(b.delivered) > 0 || len(b.r.partial) > 0 || len(b.r.done) > 0 || b.r.next != 1 || b.r.held != 0 {
				t.Errorf("it changed something: %v, %+v", b.delivered, b.r)
			}
			if b.r.Stats().Ignored != 1 {
				t.Errorf("got %+v, want 1 ignored", b.r.Stats())
			}
			b.rx(0, 1, 0, 4)
			if !slices.Equal(b.delivered, []int{1}) {
				t.Errorf("frame 1 after it: delivered %v", b.delivered)
			}
		})
	}
}

func TestVectorsFramesKeepAlive(t *testing.T) {
	var file framesFile
	vectorFile(t, "frames.json", &file)
	if want, err := hex.DecodeString(file.KeepAlive.Hex); err != nil || len(want) > 0 && !bytes.Equal(want, []byte{KeepAliveByte}) {
		t.Errorf("got %x, want %x, %v", KeepAliveByte, want, err)
	}
}
