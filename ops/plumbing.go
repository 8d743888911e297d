package ops

import (
	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/check"
	"github.com/primus-fl/primus/ops/quant"
	"github.com/primus-fl/primus/tensor"
)

// The ops of this file compute nothing: they are set-up, queries and memory layout of one vendor's
// GPU libraries. They are declared so that a vendor can register an impl and a policy can name
// them. An argument of type any is an object that belongs to the impl; an op that returns a value
// writes it to Result.

// declared returns the handle of an op that only checks that the arguments it needs are given.
func declared[A any](name, doc string, require func(c *check.Call, a A), list func(a A) check.Operands) *opregistry.Op[A] {
	return opregistry.NewOp(name, opregistry.Schema[A]{
		Doc: doc,
		Validate: func(a A) error {
			c := check.Call{Op: name}
			require(&c, a)
			return c.Err
		},
		Operands: func(a A) []opregistry.Operand {
			if list == nil {
				return nil
			}
			return list(a)
		},
	})
}

func object(c *check.Call, name string, there bool) {
	if c.Err == nil && !there {
		c.Fail(name, "an object", "nil")
	}
}

// SwizzleScalesForGemmArgs are the arguments of SwizzleScalesForGemm.
type SwizzleScalesForGemmArgs struct {
	Tensor  quant.Quantized
	Scaling quant.Scaling // mxfp8 or nvfp4
}

// SwizzleScalesForGemm reorders the scales of a tensor in place into the layout of cuBLASLt.
var SwizzleScalesForGemm = declared("swizzle_scales_for_gemm_", "reorders scales in place for cuBLASLt",
	func(c *check.Call, a SwizzleScalesForGemmArgs) {
		checkSwizzled(c, a.Scaling)
		object(c, "tensor", a.Tensor.ScaleInv != nil || a.Tensor.ColumnwiseScaleInv != nil)
	},
	func(a SwizzleScalesForGemmArgs) check.Operands {
		return swizzled(check.Operands{}, "tensor", a.Tensor, true, true)
	})

// GroupedSwizzleForGemmArgs are the arguments of GroupedSwizzleForGemm.
type GroupedSwizzleForGemmArgs struct {
	TensorList          []quant.Quantized
	Scaling             quant.Scaling // mxfp8 or nvfp4
	Rowwise, Columnwise bool          // which scales
}

// GroupedSwizzleForGemm is SwizzleScalesForGemm for a group of tensors.
var GroupedSwizzleForGemm = declared("grouped_swizzle_for_gemm", "reorders the scales of a group in place for cuBLASLt",
	func(c *check.Call, a GroupedSwizzleForGemmArgs) {
		checkSwizzled(c, a.Scaling)
		for i, z := range a.TensorList {
			if c.Err == nil {
				object(c, "tensor", (!a.Rowwise || z.ScaleInv != nil) && (!a.Columnwise || z.ColumnwiseScaleInv != nil))
				quant.Locate(c, "_list", i)
			}
		}
	},
	func(a GroupedSwizzleForGemmArgs) check.Operands {
		var o check.Operands
		for i, z := range a.TensorList {
			o = swizzled(o, check.Indexed("tensor_list", i), z, a.Rowwise, a.Columnwise)
		}
		return o
	})

func checkSwizzled(c *check.Call, s quant.Scaling) {
	if s != quant.MXFP8Scaling && s != quant.NVFP4Scaling {
		c.Fail("scaling", "mxfp8 or nvfp4", "%v", s)
	}
}

func swizzled(o check.Operands, name string, z quant.Quantized, rowwise, columnwise bool) check.Operands {
	if rowwise {
		o = o.Update(name+".scale_inv", z.ScaleInv)
	}
	if columnwise {
		o = o.Update(name+".columnwise_scale_inv", z.ColumnwiseScaleInv)
	}
	return o
}

// CreateFP8TensorMetaArgs are the arguments of CreateFP8TensorMeta.
type CreateFP8TensorMetaArgs struct{ Result *quant.FP8TensorMeta }

// CreateFP8TensorMeta makes an empty state of delayed scaling.
var CreateFP8TensorMeta = declared("create_fp8_tensor_meta", "makes an empty state of delayed scaling",
	func(c *check.Call, a CreateFP8TensorMetaArgs) { object(c, "result", a.Result != nil) }, nil)

// BulkOverlapAGWithExternalGemmArgs are the arguments of BulkOverlapAGWithExternalGemm.
type BulkOverlapAGWithExternalGemmArgs struct {
	AllgatherCommunicator  any // of CreateCommOverlap
	SendStream, RecvStream device.Stream
}

// BulkOverlapAGWithExternalGemm starts an all-gather that runs at the same time as a GEMM
// elsewhere.
var BulkOverlapAGWithExternalGemm = declared("bulk_overlap_ag_with_external_gemm", "all-gather beside a GEMM of another library",
	func(c *check.Call, a BulkOverlapAGWithExternalGemmArgs) {
		object(c, "allgather_communicator", a.AllgatherCommunicator != nil)
	}, nil)

// CreateCommOverlapHelperArgs are the arguments of CreateCommOverlapHelper.
type CreateCommOverlapHelperArgs struct {
	WorldGroup, IntraNodeGroup any // process groups; nil for one process
	Result                     *any
}

// CreateCommOverlapHelper makes the set-up object of communication overlap.
var CreateCommOverlapHelper = declared("create_comm_overlap_helper", "makes the set-up object of communication overlap",
	func(c *check.Call, a CreateCommOverlapHelperArgs) { object(c, "result", a.Result != nil) }, nil)

// CreateCommOverlapArgs are the arguments of CreateCommOverlap and CreateCommOverlapP2P.
type CreateCommOverlapArgs struct {
	BufferShape []int
	BufferDType tensor.DType
	Helper      any // of CreateCommOverlapHelper
	TPSize      int
	CommType    any // of CreateCommOverlapP2P: which collective
	Result      *any
}

// CreateCommOverlap makes a communicator whose collectives run at the same time as GEMMs.
var CreateCommOverlap = declared("create_comm_overlap", "makes a communicator that overlaps with GEMMs", commOverlap, nil)

// CreateCommOverlapP2P makes a communicator like that of CreateCommOverlap which sends from rank to
// rank.
var CreateCommOverlapP2P = declared("create_comm_overlap_p2p", "makes a point-to-point communicator that overlaps with GEMMs", commOverlap, nil)

func commOverlap(c *check.Call, a CreateCommOverlapArgs) {
	object(c, "helper", a.Helper != nil)
	object(c, "result", a.Result != nil)
	if c.Err == nil && !a.BufferDType.Valid() {
		c.Fail("buffer_dtype", "a valid dtype", "%v", a.BufferDType)
	}
	if c.Err == nil && a.TPSize < 1 {
		c.Fail("tp_size", "a number of ranks >= 1", "%d", a.TPSize)
	}
}

// InitNVSHMEMBackendArgs are the arguments of InitNVSHMEMBackend.
type InitNVSHMEMBackendArgs struct{ ProcessGroup any }

// InitNVSHMEMBackend starts NVSHMEM for a process group.
var InitNVSHMEMBackend = declared("init_nvshmem_backend", "starts NVSHMEM",
	func(c *check.Call, a InitNVSHMEMBackendArgs) { object(c, "process_group", a.ProcessGroup != nil) }, nil)

// CreateNVSHMEMTensorArgs are the arguments of CreateNVSHMEMTensor.
type CreateNVSHMEMTensorArgs struct {
	Shape  []int
	DType  tensor.DType
	Result **tensor.Tensor
}

// CreateNVSHMEMTensor makes a tensor in memory that all ranks can reach.
var CreateNVSHMEMTensor = declared("create_nvshmem_tensor", "makes a tensor in NVSHMEM memory",
	func(c *check.Call, a CreateNVSHMEMTensorArgs) {
		if !a.DType.Valid() {
			c.Fail("dtype", "a valid dtype", "%v", a.DType)
		}
		object(c, "result", a.Result != nil)
	}, nil)

// NVSHMEMSendOnCurrentStreamArgs are the arguments of NVSHMEMSendOnCurrentStream.
type NVSHMEMSendOnCurrentStreamArgs struct {
	Src, Dst *tensor.Tensor
	Peer     int
	Signal   *tensor.Tensor
}

// NVSHMEMSendOnCurrentStream copies src to dst on another rank and sets its signal.
var NVSHMEMSendOnCurrentStream = declared("nvshmem_send_on_current_stream", "copies a tensor to another rank by NVSHMEM",
	func(c *check.Call, a NVSHMEMSendOnCurrentStreamArgs) {
		if c.Given("src", a.Src) && c.Given("dst", a.Dst) && c.Given("signal", a.Signal) && a.Peer < 0 {
			c.Fail("peer", "a rank >= 0", "%d", a.Peer)
		}
	},
	func(a NVSHMEMSendOnCurrentStreamArgs) check.Operands {
		return check.Operands{}.Read("src", a.Src).Write("dst", a.Dst).Update("signal", a.Signal)
	})

// NVSHMEMWaitOnCurrentStreamArgs are the arguments of NVSHMEMWaitOnCurrentStream.
type NVSHMEMWaitOnCurrentStreamArgs struct {
	Signal   *tensor.Tensor
	WaitKind string // what waits: a kernel, NVSHMEM, or the stream
}

// NVSHMEMWaitOnCurrentStream waits for a signal and clears it.
var NVSHMEMWaitOnCurrentStream = declared("nvshmem_wait_on_current_stream", "waits for a signal of NVSHMEM",
	func(c *check.Call, a NVSHMEMWaitOnCurrentStreamArgs) { c.Given("signal", a.Signal) },
	func(a NVSHMEMWaitOnCurrentStreamArgs) check.Operands {
		return check.Operands{}.Update("signal", a.Signal)
	})

// NVSHMEMFinalizeArgs are the arguments of NVSHMEMFinalize, which takes none.
type NVSHMEMFinalizeArgs struct{}

// NVSHMEMFinalize stops NVSHMEM.
var NVSHMEMFinalize = declared("nvshmem_finalize", "stops NVSHMEM", func(*check.Call, NVSHMEMFinalizeArgs) {}, nil)

// QueryArgs are the arguments of the ops that return a number.
type QueryArgs struct{ Result *int }

func query(c *check.Call, a QueryArgs) { object(c, "result", a.Result != nil) }

// GetCuBLASLtVersion returns the version of cuBLASLt. TransformerEngine writes the op's name with a
// capital L.
var GetCuBLASLtVersion = declared("get_cublaslt_version", "version of cuBLASLt", query, nil)

// GetCuDNNVersion returns the version of cuDNN.
var GetCuDNNVersion = declared("get_cudnn_version", "version of cuDNN", query, nil)

// GetNumCuBLASStreams returns how many streams grouped GEMMs of cuBLAS use.
var GetNumCuBLASStreams = declared("get_num_cublas_streams", "number of streams for cuBLAS", query, nil)

// ConvertHostPointersToTensorArgs are the arguments of ConvertHostPointersToTensor.
type ConvertHostPointersToTensorArgs struct {
	TensorLists [][]*tensor.Tensor // of equal length
	Result      *tensor.Tensor     // i64 [lists, n], on the device
}

// ConvertHostPointersToTensor writes the addresses of tensors to device memory.
var ConvertHostPointersToTensor = declared("convert_host_pointers_to_tensor", "addresses of tensors in device memory",
	func(c *check.Call, a ConvertHostPointersToTensorArgs) {
		n := 0
		for l, list := range a.TensorLists {
			if l == 0 {
				n = len(list)
			}
			if len(list) != n && c.Err == nil {
				quant.Length(c, "tensor_lists", len(list), n, "list 0")
				quant.Locate(c, "", l)
			}
			for i, t := range list {
				if t == nil {
					c.Given(check.ListName(l, i), t)
				}
			}
		}
		addresses(c, "result", a.Result, n*len(a.TensorLists))
	},
	func(a ConvertHostPointersToTensorArgs) check.Operands {
		return check.Operands{}.Lists(a.TensorLists, opregistry.AccessRead).Write("result", a.Result)
	})

// GetDevicePointerForDataAndScalesArgs are the arguments of GetDevicePointerForDataAndScales.
type GetDevicePointerForDataAndScalesArgs struct {
	DataTensors  []*tensor.Tensor
	ScaleTensors []*tensor.Tensor
	Swizzle      bool // scales are reordered for cuBLASLt
	Rowwise      bool
	DataDType    tensor.DType   // Unspecified for that of the tensors
	Result       *tensor.Tensor // i64 [2, n], on the device
}

// GetDevicePointerForDataAndScales writes the addresses of data and scales to device memory.
var GetDevicePointerForDataAndScales = declared("get_device_pointer_for_data_and_scales", "addresses of data and scales in device memory",
	func(c *check.Call, a GetDevicePointerForDataAndScalesArgs) {
		quant.Length(c, "scale_tensors", len(a.ScaleTensors), len(a.DataTensors), "data_tensors")
		for i, t := range a.DataTensors {
			if c.Err == nil {
				c.Given("data_tensors", t)
				c.Given("scale_tensors", a.ScaleTensors[i])
				quant.Locate(c, "", i)
			}
		}
		addresses(c, "result", a.Result, 2*len(a.DataTensors))
	},
	func(a GetDevicePointerForDataAndScalesArgs) check.Operands {
		var o check.Operands
		for i, t := range a.DataTensors {
			o = o.Read(check.Indexed("data_tensors", i), t).Read(check.Indexed("scale_tensors", i), a.ScaleTensors[i])
		}
		return o.Write("result", a.Result)
	})

func addresses(c *check.Call, name string, t *tensor.Tensor, n int) {
	if c.DType(name, t, tensor.I64) {
		c.Elements(name, t, n, "one a tensor")
	}
}
