"""Instructions counted in a small listing as nvdisasm prints it, by hand."""
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import count_instructions  # noqa: E402  pylint: disable=wrong-import-position

# A vector loop with one of single elements after it, and a division's slow path outside of both.
LISTING = """
\t.target\tsm_90
//--------------------- .text._ZN3zsq10map_kernelEv --------------------------
\t.section\t.text._ZN3zsq10map_kernelEv,"ax",@progbits
.text._ZN3zsq10map_kernelEv:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/               @P0 EXIT ;
.L_x_1:
        /*0020*/                   LDG.E.128 R12, desc[UR6][R28.64] ;
        /*0030*/               @P1 LDG.E.U16.CONSTANT R3, desc[UR6][R2.64] ;
        /*0040*/                   FMUL R37, R2.reuse, R12 ;
        /*0050*/                   MUFU.RCP R4, R5 ;
        /*0060*/                   F2I.FTZ.U32.TRUNC.NTZ R6, R4 ;
        /*0070*/                   UIADD3 UR4, UR4, 0x1, URZ ;
        /*0080*/                   ISETP.NE.U32.AND P1, PT, RZ, UR28, PT ;
        /*0090*/                   STG.E.64 desc[UR6][R16.64], R12 ;
        /*00a0*/              @!P1 BRA `(.L_x_1) ;
.L_x_2:
        /*00b0*/                   LDG.E R5, desc[UR6][R2.64] ;
        /*00c0*/                   DADD R8, R8, R10 ;
        /*00d0*/                   STG.E desc[UR6][R2.64], R5 ;
        /*00e0*/                   LDG.E R6, desc[UR6][R2.64+0x400] ;
        /*00f0*/              @!P1 BRA `(.L_x_2) ;
        /*0100*/                   CALL.REL.NOINC `(.L_x_9) ;
.L_x_3:
        /*0110*/                   BRA `(.L_x_3);
        /*0120*/                   NOP;
\t.section\t.text._ZN3zsq12count_kernelEv,"ax",@progbits
.text._ZN3zsq12count_kernelEv:
        /*0000*/                   LDS.64 R2, [R4] ;
        /*0010*/                   BAR.SYNC.DEFER_BLOCKING 0x0 ;
        /*0020*/                   ATOMS.POPC.INC.32 RZ, [UR4] ;
        /*0030*/                   RED.E.ADD.STRONG.GPU desc[UR4][R2.64], R5 ;
"""


class CountInstructions(unittest.TestCase):
    def setUp(self):
        self.map, self.count = count_instructions.parse(LISTING)

    def test_kernels_labels_and_instructions_are_found(self):
        self.assertEqual([self.map.name, self.count.name], ["_ZN3zsq10map_kernelEv", "_ZN3zsq12count_kernelEv"])
        self.assertEqual(self.map.labels, {".L_x_1": 0x20, ".L_x_2": 0xb0, ".L_x_3": 0x110})
        self.assertEqual((len(self.map.instructions), len(self.count.instructions)), (18, 4))  # without NOP

    def test_the_main_loop_has_the_widest_loads(self):
        loop = self.map.main_loop()
        self.assertEqual([loop[0][0], loop[-1][0]], [0x20, 0xa0])

    def test_each_kind_by_hand(self):
        counts = count_instructions.mix(self.map.main_loop())
        kinds = {name: counts[name] for name in count_instructions.COLUMNS}
        self.assertEqual(kinds, {"load": 2, "store": 1, "shared": 0, "fp32": 1, "fp64": 0, "special": 1, "convert": 1,
                                 "integer": 2, "atomic": 0, "barrier": 0, "other": 1})
        self.assertEqual((counts["load", 16], counts["load", 2], counts["store", 8]), (1, 1, 1))
        self.assertEqual(count_instructions.by_width(counts, "load"), "1 x 16 + 1 x 2")

    def test_a_kernel_without_a_loop_counts_whole(self):
        counts = count_instructions.mix(self.count.main_loop())
        self.assertEqual((counts["shared"], counts["barrier"], counts["atomic"]), (1, 1, 2))

    def test_instructions_per_16_bytes(self):
        # 9 instructions move 16 + 2 + 8 bytes: 16 * 9 / 26.
        self.assertEqual(count_instructions.row(self.map.main_loop())[-2:], ["9", "6"])
        self.assertEqual(count_instructions.row(self.count.main_loop())[-2:], ["4", ""])


if __name__ == "__main__":
    unittest.main()
