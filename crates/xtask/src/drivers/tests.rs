//! What drivers say.

use super::*;

fn cases_of(gpu: &Gpu, said: &str) -> Vec<(String, Vec<Kernel>)> {
    read(gpu, said.lines().map(String::from))
}

#[test]
fn kernels_belong_to_the_case_before_them() {
    let [amd, nvidia] = &GPUS;
    let said = "*** SHADER STATS ***\nVGPRs: 24\ncase f32, heads of 64\n\nCompute Shader:\n*** SHADER STATS ***\nSGPRs: 108\nVGPRs: 156\n\
                Spilled SGPRs: 3\nSpilled VGPRs: 2\nScratch size: 8\nInstructions: 4412\n********************\n*** SHADER STATS ***\nVGPRs: 12\n\
                case f32, heads of 80, sinks\n";
    let of_64 = vec![
        Kernel {
            registers: 156,
            spilled: 10,
            instructions: 4412,
        },
        Kernel {
            registers: 12,
            ..Kernel::default()
        },
    ];
    let expected = [
        ("f32, heads of 64", of_64),
        ("f32, heads of 80, sinks", Vec::new()),
    ];
    assert_eq!(
        cases_of(amd, said),
        expected.map(|(case, kernels)| (case.to_string(), kernels))
    );

    let said = "case f16, heads of 64\nblock 0 {\nStage: compute\nInstruction count: 3130\nStatic cycle count: 76413\nSpills to mem: 0\n\
                Spills to reg: 7\nNum GPRs: 112\nSLM size: 0\nEncoded shader:\n";
    let kernel = Kernel {
        registers: 112,
        spilled: 0,
        instructions: 3130,
    };
    assert_eq!(
        cases_of(nvidia, said),
        [("f16, heads of 64".to_string(), vec![kernel])]
    );
}

#[test]
fn the_width_of_a_case() {
    assert_eq!(width("f16, heads of 128, sinks"), Ok(128));
    assert!(width("f16").is_err());
}
