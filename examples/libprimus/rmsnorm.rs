//! Normalises two rows with the op rmsnorm_fwd and says which implementation did it.
//!
//!     rustc -o rmsnorm rmsnorm.rs -L bin/lib -l primus -C link-arg=-Wl,-rpath,bin/lib

use std::ffi::{c_char, c_void, CStr, CString};

#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    ndim: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

/// A primus_arg; value is the address of a tensor, or the bits of a number.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Arg {
    sort: u32,
    reserved: u32,
    value: u64,
}

const TENSOR: u32 = 1;
const FLOAT: u32 = 5;

extern "C" {
    fn primus_open(options: *const c_void, manager: *mut u64) -> i32;
    fn primus_close(manager: u64) -> i32;
    fn primus_bind(manager: u64, op: *const c_char, layout: u64, bound: *mut u64) -> i32;
    fn primus_run(bound: u64, args: *const Arg, n_args: u32, saved: *mut u64) -> i32;
    fn primus_explain(manager: u64, op: *const c_char, text: *mut *mut c_char) -> i32;
    fn primus_error() -> *const c_char;
    fn primus_free(text: *mut c_char);
}

fn check(result: i32) -> Result<(), String> {
    match result {
        0 => Ok(()),
        _ => Err(unsafe { CStr::from_ptr(primus_error()) }.to_string_lossy().into_owned()),
    }
}

/// The shape of a contiguous tensor of f32, which its description points to.
struct F32<'a> {
    shape: Vec<i64>,
    data: &'a mut [f32],
}

impl F32<'_> {
    fn describe(&mut self) -> Tensor {
        Tensor {
            data: self.data.as_mut_ptr().cast(),
            device_type: 1,
            device_id: 0,
            ndim: self.shape.len() as i32,
            code: 2,
            bits: 32,
            lanes: 1,
            shape: self.shape.as_mut_ptr(),
            strides: std::ptr::null_mut(),
            byte_offset: 0,
        }
    }
}

fn tensor(t: &Tensor) -> Arg {
    Arg { sort: TENSOR, reserved: 0, value: t as *const Tensor as u64 }
}

fn float(v: f64) -> Arg {
    Arg { sort: FLOAT, reserved: 0, value: v.to_bits() }
}

fn main() -> Result<(), String> {
    let (mut x, mut weight) = ([1f32, 2., 2., 4., 0., 3.], [1f32, 1., 2.]);
    let (mut y, mut rsigma) = ([0f32; 6], [0f32; 2]);
    let (mut manager, mut rmsnorm, mut saved) = (0u64, 0u64, 0u64);
    let op = CString::new("rmsnorm_fwd").unwrap();
    unsafe {
        check(primus_open(std::ptr::null(), &mut manager))?;
        check(primus_bind(manager, op.as_ptr(), 0, &mut rmsnorm))?;
        let mut operands = [
            F32 { shape: vec![2, 3], data: &mut x },
            F32 { shape: vec![3], data: &mut weight },
            F32 { shape: vec![2, 3], data: &mut y },
            F32 { shape: vec![2], data: &mut rsigma },
        ];
        let tensors: Vec<Tensor> = operands.iter_mut().map(F32::describe).collect();
        let mut args: Vec<Arg> = tensors.iter().map(tensor).collect(); // input, weight, output, rsigma
        args.push(float(1e-6)); // eps
        check(primus_run(rmsnorm, args.as_ptr(), args.len() as u32, &mut saved))?;
        args[4] = float(0.);
        let refused = check(primus_run(rmsnorm, args.as_ptr(), args.len() as u32, &mut saved)).unwrap_err();

        for row in y.chunks(3) {
            println!("{:.4} {:.4} {:.4}", row[0], row[1], row[2]);
        }
        println!("{refused}");
        let mut text = std::ptr::null_mut();
        check(primus_explain(manager, op.as_ptr(), &mut text))?;
        println!("{}", CStr::from_ptr(text).to_string_lossy());
        primus_free(text);
        check(primus_close(manager))
    }
}
